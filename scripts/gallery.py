# SPDX-License-Identifier: Apache-2.0
"""Hooks of the documentation site: run the notebooks of the gallery and add each as a page.

A notebook is a Python file in ``docs/gallery`` whose cells begin with ``# %%`` (text: ``# %% [markdown]``). Editors
open it as a notebook, and its changes read well. It runs from top to bottom whenever the site is built, in an empty
folder; a cell that raises fails the build. Called by mkdocs, through ``mkdocs.yml``.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import os
import posixpath
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

FOLDER = "gallery"
# Lines and letters of pictures are drawn in this color, which the page replaces by that of its own text.
INK = "#010203"


def on_files(files: Any, config: Any) -> Any:
    """Run every notebook, and add what it shows as a page."""
    from mkdocs.structure.files import File

    for notebook in sorted((Path(config["docs_dir"]) / FOLDER).glob("*.py")):
        page = page_of(notebook.read_text(encoding="utf-8"), notebook.name)
        files.append(File.generated(config, f"{FOLDER}/{notebook.stem}.md", content=page))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Let links to a notebook lead to its page: in the repository they lead to the file."""

    def page_instead(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), link[1]))
        is_notebook = posixpath.dirname(target) == FOLDER and files.get_file_from_path(f"{target}.md") is not None
        return f"]({link[1]}.md)" if is_notebook else link[0]

    return re.sub(r"\]\(([\w./-]+)\.py\)", page_instead, markdown)


def page_of(source: str, name: str) -> str:
    """Return a notebook as Markdown: its text, its code, and what each cell showed when it ran here."""
    names: dict[str, Any] = {"__name__": "__main__"}
    parts = []
    with _in_an_empty_folder(), _pictures():
        for kind, text in cells_of(source):
            parts.append(text if kind == "markdown" else f"```python\n{text}\n```")
            if kind == "code":
                parts += run_cell(text, names, name)
    title, *rest = parts
    download = f'<p class="notebook"><a href="{name}" download>Download this notebook</a> ({name})</p>'
    return "\n\n".join([title, download, *rest]) + "\n"


def cells_of(source: str) -> list[tuple[str, str]]:
    """Return the kind (``"markdown"`` or ``"code"``) and the text of each cell; lines before the first are left out."""
    found = []
    for marker, body in re.findall(r"^# %%([^\n]*)\n(.*?)(?=^# %%|\Z)", source, re.MULTILINE | re.DOTALL):
        if "[markdown]" in marker:
            found.append(("markdown", re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE)))
        else:
            found.append(("code", body.strip()))
    return found


def run_cell(text: str, names: dict[str, Any], name: str) -> list[str]:
    """Run one cell; return what it printed, its warnings, the value of its last line and its pictures, as Markdown."""
    tree = ast.parse(text, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("default")
        exec(compile(tree, name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    shown = [_output(printed.getvalue())] if printed.getvalue() else []
    shown += [_output(f"{entry.category.__name__}: {entry.message}") for entry in caught]
    pictures = _drawn()
    if value is not None and not pictures:  # the last line of a drawing is an artist, which nobody wants to read
        shown.append(_plain_table(value._repr_html_()) if hasattr(value, "_repr_html_") else _output(repr(value)))
    return shown + pictures


def _output(text: str) -> str:
    return f'<pre class="output">{html.escape(text.rstrip())}</pre>'.replace("\n", "&#10;")  # one line stays HTML


def _plain_table(shown: str) -> str:
    """Leave the look of a table to the site."""
    shown = re.sub(r"<style.*?</style>", "", shown, flags=re.DOTALL)
    shown = re.sub(r"<(table|tr|th|td)\b(?:(?! colspan| scope)[^>])*>", r"<\1>", shown)
    return '<div class="output">' + "".join(line.strip() for line in shown.splitlines()) + "</div>"


@contextlib.contextmanager
def _in_an_empty_folder() -> Any:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


@contextlib.contextmanager
def _pictures() -> Any:
    """Draw without a screen, letters as letters, in the color of the text around the picture."""
    import matplotlib

    look = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    look |= {"svg.fonttype": "none", "svg.hashsalt": "sfumato", "savefig.transparent": True, "legend.framealpha": 0}
    look |= {"axes.spines.top": False, "axes.spines.right": False, "font.family": "sans-serif", "font.size": 10}
    with matplotlib.rc_context({"backend": "svg", **look}):
        yield


def _drawn() -> list[str]:
    """Return the open figures as SVG, and close them."""
    import matplotlib.pyplot as plt

    found = []
    for number in plt.get_fignums():
        drawing = io.StringIO()
        plt.figure(number).savefig(drawing, format="svg", bbox_inches="tight", metadata={"Date": None})
        plt.close(number)
        svg = drawing.getvalue()
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
        svg = svg.replace(INK, "currentColor").replace("'DejaVu Sans', ", "")
        svg = " ".join(line.strip() for line in svg.splitlines())
        found.append(f'<div class="picture">{svg}</div>')
    return found

# SPDX-License-Identifier: Apache-2.0
"""Write results as a page: the machine first, then one table per benchmark. Called by the command."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import Result, format_target, format_value, format_verdict

HEADINGS = ("measured", "value", "target", "met", "how")
# These two change from one run to the next on the same machine.
PASSING = ("Date", "Other work at the start")


@dataclass(frozen=True)
class Section:
    """One benchmark's part of the page."""

    name: str
    title: str
    about: str
    results: Sequence[Result]


class MixedMachinesError(ValueError):
    """The page holds results of another machine or other versions, which must not stand beside new ones."""


def render_page(machine: Mapping[str, str], sections: Sequence[str], *, is_quick: bool = False) -> str:
    """Put the page together from rendered sections."""
    lines = [
        "# What was measured",
        "",
        "Written by `python -m benchmarks --write`. Times are the best of five unless a row says otherwise; a",
        "ratio compares two times of the same run. Kernels are compiled beforehand; what that takes has its own row.",
        "",
    ]
    if is_quick:
        lines += ["**A quick run with tiny sizes: it shows that everything runs, and its numbers mean nothing.**", ""]
    lines += ["| machine | |", "| --- | --- |"]
    lines += [f"| {_cell(key)} | {_cell(value)} |" for key, value in machine.items()]
    return "\n".join(lines) + "\n\n" + "\n\n".join(section.strip() for section in sections) + "\n"


def render_section(section: Section, *, date: str) -> str:
    """Render one benchmark: a heading, its question, a table."""
    lines = [f"## {section.name}: {section.title}", "", section.about, "", f"Measured on {date}.", ""]
    lines += [f"| {' | '.join(HEADINGS)} |", f"| {' | '.join(['---'] * len(HEADINGS))} |"]
    for result in section.results:
        cells = (
            result.name,
            format_value(result),
            format_target(result.target, result.unit),
            format_verdict(result),
            result.note,
        )
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    return "\n".join(lines)


def write_page(path: Path, machine: Mapping[str, str], sections: Sequence[Section], *, is_quick: bool = False) -> None:
    """Write the page; benchmarks that were not run now keep their section, if the machine is the same.

    Raises
    ------
    MixedMachinesError
        The page has other sections from another machine or other versions. Nothing is written.
    """
    rendered = {section.name: render_section(section, date=machine.get("Date", "")) for section in sections}
    kept: dict[str, str] = {}
    if path.exists():
        page = path.read_text(encoding="utf-8")
        kept = {name: text for name, text in split_sections(page).items() if name not in rendered}
        if kept and _lasting(read_machine(page)) != _lasting(machine):
            raise MixedMachinesError(
                f"{path.name} holds {', '.join(sorted(kept))} from another machine or other versions: expected "
                "one machine per page. Run all benchmarks, or write to another file with --output."
            )
    merged = {**kept, **rendered}
    text = render_page(machine, [merged[name] for name in sorted(merged)], is_quick=is_quick)
    temporary = path.with_name(path.name + ".partial")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def split_sections(page: str) -> dict[str, str]:
    """Return the sections of a page by benchmark name."""
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    return {part[len("## ") :].split(":", 1)[0]: part.strip() for part in parts}


def read_machine(page: str) -> dict[str, str]:
    """Return the machine's table of a page."""
    head = page.split("\n## ", 1)[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]*) \|$", head, flags=re.MULTILINE)
    return {key.strip(): value.strip() for key, value in rows if key.strip() not in {"machine", "---"}}


def _lasting(machine: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in machine.items() if key not in PASSING}


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")

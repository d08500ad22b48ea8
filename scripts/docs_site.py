# SPDX-License-Identifier: Apache-2.0
"""Hooks of the documentation site: what is written in code is listed from code, when the site is built.

Pages name a list in a comment, ``<!-- list: commands -->``, and get it put there. Pages of results and decision
records join the navigation by being in their folders. Called by mkdocs, through ``mkdocs.yml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Name the version in the header, and add the pages that other programs write to the navigation."""
    from sfumato import __version__

    config["site_name"] = f"sfumato {__version__}"
    docs = Path(config["docs_dir"])
    for title, folder in (("Results", "results"), ("Decisions", "adr")):
        pages = sorted(path.relative_to(docs).as_posix() for path in (docs / folder).glob("*.md"))
        if pages:
            config["nav"].append({title: _as_listed(docs / folder / "README.md", pages)})
    return config


def _as_listed(index: Path, pages: list[str]) -> list[str]:
    """Return the pages of a folder in the order in which its README links to them; the others follow it."""
    text = index.read_text(encoding="utf-8") if index.exists() else ""

    def place(page: str) -> tuple[bool, int]:
        found = text.find(f"]({page.rpartition('/')[2]})")
        return not page.endswith("README.md"), found if found >= 0 else len(text)

    return sorted(pages, key=place)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put every list that a page names in its place."""
    return re.sub(r"<!-- list: ([a-z ]+) -->", lambda found: LISTS[found[1]](), markdown)


def list_commands() -> str:
    """Return every command with its help and its options."""
    import typer

    from sfumato.cli.application import application

    commands = typer.main.get_command(application).commands  # type: ignore[attr-defined]
    return "\n\n".join(_command(name, command) for name, command in commands.items())


def list_policy_settings() -> str:
    """Return one table per section of a policy file."""
    from sfumato.policy.settings import SECTIONS

    parts = []
    for section, settings in SECTIONS.items():
        rows = ["| setting | value | default | meaning |", "| --- | --- | --- | --- |"]
        for name, setting in settings.items():
            kind = " or ".join(f"`{choice}`" for choice in setting.choices) or setting.kind
            if setting.kind == "choices":
                kind = f"list of {kind}"
            if setting.at_least is not None:
                kind += f", at least {setting.at_least:g}"
            rows.append(f"| `{name}` | {kind} | {_default(setting.default)} | {_cell(setting.sentence)} |")
        parts.append(f"## `[{section}]`\n\n" + "\n".join(rows))
    return "\n\n".join(parts)


def list_criteria() -> str:
    """Return every criterion that a policy can ask for, with its settings."""
    from sfumato.criteria import CRITERIA
    from sfumato.policy.criteria import is_required, settings_of

    rows = ["| name | what holds | settings |", "| --- | --- | --- |"]
    parts = []
    for name, kind in CRITERIA.items():
        settings = settings_of(name)
        shown = ", ".join(f"`{key}`" for key in settings)
        rows.append(f"| `{name}` | {_cell(kind.facts.sentence)} | {shown} |")
        own = ["| setting | value | default | meaning |", "| --- | --- | --- | --- |"]
        for key, setting in settings.items():
            value = " or ".join(f"`{choice}`" for choice in setting.choices) or setting.kind
            default = "*required*" if is_required(setting) else _default(setting.default)
            own.append(f"| `{key}` | {value} | {default} | {_cell(setting.sentence)} |")
        parts.append(f"### `{name}`\n\n" + "\n".join(own))
    return "\n\n".join(["\n".join(rows), *parts])


def list_representatives() -> str:
    """Return every representative and what it shows."""
    from sfumato.representatives import REPRESENTATIVES

    rows = [
        "| name | the records of a group get | one real record's | types stay | drawn at random |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, representative in REPRESENTATIVES.items():
        facts = representative.facts
        flags = " | ".join(map(_yes, (facts.is_real_person, facts.keeps_type, facts.needs_seed)))
        rows.append(f"| `{name}` | {_cell(facts.sentence)} | {flags} |")
    return "\n".join(rows)


def list_attacks() -> str:
    """Return every attack that audits run."""
    from sfumato.attack import ATTACKS

    rows = ["| name | attacks | the attacker | risk | from level | needs |", "| --- | --- | --- | --- | --- | --- |"]
    for name, attack in ATTACKS.items():
        facts = attack.facts
        on = "the release" if facts.target == "release" else "the model"
        needs = ", ".join(facts.needs) or "nothing"
        rows.append(f"| `{name}` | {on} | {_cell(facts.sentence)} | {facts.eu_risk} | `{facts.from_level}` | {needs} |")
    return "\n".join(rows)


def list_methods() -> str:
    """Return every method of anonymization that policies and commands can name."""
    from sfumato.anonymize import METHODS

    rows = [
        "| name | how groups are formed | follows | for `sfumato apply` | in blocks from files | in Python |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, method in METHODS.items():
        facts = method.facts
        presets = ", ".join(f"{key}={value!r}" for key, value in method.presets.items())
        call = f"`{method.kind.__name__}({presets})`" if presets else f"`{method.kind.__name__}`"
        follows = {"model": "a model", "labels": "the labels"}.get(facts.guided_by or "", "nothing")
        flags = f"{_yes(facts.has_document)} | {_yes(facts.by_counts)}"
        rows.append(f"| `{name}` | {_cell(facts.sentence)} | {follows} | {flags} | {call} |")
    return "\n".join(rows)


def list_models() -> str:
    """Return every model that policies and commands can train."""
    from sfumato.models import MODELS

    rows = ["| name | what it is | learns |", "| --- | --- | --- |"]
    rows += [
        f"| `{name}` | {_cell(model.facts.sentence)} | {' and '.join(model.facts.tasks)} |"
        for name, model in MODELS.items()
    ]
    return "\n".join(rows)


LISTS: dict[str, Callable[[], str]] = {
    "attacks": list_attacks,
    "commands": list_commands,
    "criteria": list_criteria,
    "methods": list_methods,
    "models": list_models,
    "policy settings": list_policy_settings,
    "representatives": list_representatives,
}


def _command(name: str, command: Any) -> str:
    usage = " ".join(part.name.upper() for part in command.params if part.param_type_name == "argument")
    text, _, rest = command.help.partition("[bold]Examples[/bold]")
    examples, _, _ = rest.partition("Exit codes:")
    lines = [f"## sfumato {name}", "", *_paragraphs(text), "```text", f"sfumato {name} [OPTIONS] {usage}".rstrip()]
    shown = _examples(examples)
    lines += ["```", "", *(["```sh", *shown, "```", ""] if shown else [])]
    rows = ["| option | meaning | default |", "| --- | --- | --- |"]
    for part in command.params:
        if part.name != "help" and not part.hidden:
            rows.append(_option(part))
    return "\n".join([*lines, *rows])


def _paragraphs(text: str) -> list[str]:
    text = re.sub(r"\[/?bold\]", "**", text)  # what the console shows in bold
    return [line for part in re.split(r"\n\s*\n", text.strip()) for line in (" ".join(part.split()), "")]


def _examples(text: str) -> list[str]:
    # Two spaces begin an example, four go on with it.
    joined = re.sub(r"\n+ {3,}", " \\\\\n    ", text)
    return [re.sub(r"^ {2}(?! )", "", line.rstrip()) for line in joined.splitlines() if line.strip()]


def _option(part: Any) -> str:
    if part.param_type_name == "argument":
        shown = f"`{part.name.upper()}`"
    else:
        value = "" if part.is_flag else f" {part.metavar or '...'}"
        shown = f"`{', '.join([*part.opts, *part.secondary_opts])}{value}`"
    if part.required:
        default = "*required*"
    else:
        default = part.show_default if isinstance(part.show_default, str) else _default(part.default)
    return f"| {shown} | {_cell(part.help or '')} | {_cell(str(default))} |"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _default(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "on" if value else "off"
    if value in ((), {}, ""):
        return "none"
    return f"`{value}`"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

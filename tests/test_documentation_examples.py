# SPDX-License-Identifier: Apache-2.0
"""Every example runs: those of the README, of every page of the documentation, and of the docstrings.

A page runs from top to bottom in an empty folder. A block with a title is written to the file of that name, Python runs
in one namespace, and commands after a ``$`` run through the command line. Output that a page shows must come, up to its
numbers; ``$ echo $?`` says which exit code the last command must have.
"""

import csv
import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import shlex
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

import sfumato
import sfumato.attack
import sfumato.private
import sfumato.verification
from sfumato.cli.application import application
from sfumato.policy.settings import SECTIONS

REPOSITORY = Path(__file__).parents[1]
DOCUMENTATION = REPOSITORY / "docs"
PAGES = [
    page
    for page in sorted(DOCUMENTATION.rglob("*.md"))
    if page.relative_to(DOCUMENTATION).parts[0] not in ("adr", "results", "reference")
]
RUN_ELSEWHERE = {
    "learning-what-to-collect.md": "tests/minimize/test_page.py",
    "spark.md": "tests/spark/test_page.py",
}
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
MODULES = ["sfumato", *(module.name for module in pkgutil.walk_packages(sfumato.__path__, "sfumato."))]


def readme_blocks(language: str) -> list[str]:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def people_file(path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "age", "sex", "postcode", "occupation", "income"])
        for person in range(300):
            age = int(random.integers(18, 80))
            sex, occupation = random.choice(["f", "m"]), random.choice(["nurse", "teacher", "clerk", "farmer"])
            income = "high" if age + 20 * (occupation == "teacher") + random.normal(0, 5) > 50 else "low"
            rows.writerow([f"person {person}", age, sex, f"0{random.integers(10, 20)}", occupation, income])


def test_the_readme_example_runs_and_keeps_its_promise(capsys):
    blocks = readme_blocks("python")
    assert len(blocks) == 2
    names: dict[str, object] = {}
    with threadpool_limits(1):
        for block in blocks:
            exec(compile(block, "README.md", "exec"), names)
    raw, anonymous, smallest = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    assert smallest >= 100
    assert anonymous > raw - 0.03  # one split and one seed: far off the recorded results would be a defect
    assert names["released"].shape == names["X_train"].shape
    assert list(names["released"].dtypes) == list(names["X_train"].dtypes)


def test_the_readme_commands_run_and_keep_their_promise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people_file(tmp_path / "people.csv", 0)
    lines = [line for block in readme_blocks("sh") for line in block.replace("\\\n", " ").splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("sfumato ")]
    assert [command[1] for command in commands] == ["anonymize", "minimize", "anatomize", "audit", "init", "run"]
    with threadpool_limits(1):
        for _, *arguments in commands:
            result = CliRunner().invoke(application, arguments)
            assert result.exit_code == 0, result.output
    with (tmp_path / "people-k10.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 300
    assert set(rows[0]) == {"age", "sex", "postcode", "occupation", "income"}
    keys = Counter((row["age"], row["sex"], row["postcode"], row["occupation"]) for row in rows)
    assert min(keys.values()) >= 10
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {"partition.json", "generalization.json", "form.html", "identifying.csv", "audit.html"} <= written


def test_the_worked_example_of_the_engine_comes_out_as_the_page_says():
    ages, predicted = np.array([[23], [27], [31], [36], [44], [58]]), np.array([0, 0, 0, 0, 1, 1])
    anonymizer = sfumato.ModelGuidedAnonymizer(k=2, representative="range").fit(ages, predicted)
    groups = {label for row in anonymizer.release(ages).table.tolist() for label in row}
    page = (REPOSITORY / "docs" / "how-the-engine-works.md").read_text(encoding="utf-8")
    assert groups == {"29 and under", "30-40", "41 and over"}
    text = " ".join(page.split())
    assert "23-27, 31-36 and 44-58" in text
    assert "*29 and under*, *30-40* and *41 and over*" in text


def test_the_page_on_the_engine_names_the_default_representative():
    text = (REPOSITORY / "docs" / "how-the-engine-works.md").read_text(encoding="utf-8")
    default = sfumato.ModelGuidedAnonymizer().representative
    assert f'By default (`"{default}"`) they are typical values' in text


def test_the_readme_says_what_the_page_on_adult_says():
    written = (REPOSITORY / "docs" / "results" / "adult-utility.md").read_text(encoding="utf-8")
    readme = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    average, instead = re.findall(r"k=100,? (?:raw test data:|would be) ([+-][0-9.]+)", written)
    assert f"average at k = 100 would be {instead} instead of {average}." in readme
    [(difference, interval)] = re.findall(r"boosting \| 1000 \| 87.*\| (\S+) (\[.*\]) \|$", written, re.M)[-1:]
    assert f"it is {difference} points from Algorithm 1 (95% CI {interval})" in readme


def test_no_page_claims_more_independence_of_the_recount_than_it_has():
    pages = [REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *(REPOSITORY / "docs").rglob("*.md")]
    for page in pages:
        assert "shares nothing with the engine" not in " ".join(page.read_text(encoding="utf-8").split()), page.name
    imports = re.findall(
        r"^\s*(?:from|import) (sfumato[\w.]*)", Path(sfumato.verification.__file__).read_text(encoding="utf-8"), re.M
    )
    assert {name.split(".")[1] for name in imports} == {"frames"}


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_every_docstring_example_runs(name):
    if name == "sfumato.minimize.neural":
        pytest.importorskip("torch")
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=options)
    assert failed == 0


def name_of(page: Path) -> str:
    return page.relative_to(DOCUMENTATION).as_posix()


def without_numbers(line: str) -> str:
    return " ".join(re.sub(r"\d[\d.,]*", "#", line).split())


def steps(block: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a console block, each with the output that is shown for it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def run_console(block: str) -> None:
    commands = steps(block)
    for number, (command, shown) in enumerate(commands):
        if command == "echo $?":
            continue
        follows = commands[number + 1] if number + 1 < len(commands) else ("", [])
        expected = int(follows[1][0]) if follows[0] == "echo $?" else 0
        program, *arguments = shlex.split(command)
        assert program == "sfumato", command
        target = None
        if ">" in arguments:
            arguments, [target] = arguments[: arguments.index(">")], arguments[arguments.index(">") + 1 :]
        result = CliRunner().invoke(application, arguments)
        assert result.exit_code == expected, f"{command}\n{result.output}"
        if target is not None:
            Path(target).write_text(result.stdout, encoding="utf-8")
        printed = {without_numbers(line) for line in result.output.splitlines()}
        assert [line for line in shown if without_numbers(line) not in printed] == [], result.output


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, small_attackers):
    if page.name in RUN_ELSEWHERE:
        assert page.name in (REPOSITORY / RUN_ELSEWHERE[page.name]).read_text(encoding="utf-8")
        return
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as in a prompt that was opened there
    monkeypatch.setenv("COLUMNS", "100")
    names: dict[str, object] = {}
    with threadpool_limits(1):
        for language, title, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if title:
                Path(title).write_text(text, encoding="utf-8")
            elif language == "python":
                exec(compile(text, page.name, "exec"), names)
            elif language == "console":
                run_console(text)
            else:
                assert "sfumato " not in text, f"a {language} block of {page.name} has a command that nobody runs"


def test_no_block_of_a_page_is_overlooked():
    for page in PAGES:
        rest = BLOCK.sub("", page.read_text(encoding="utf-8"))
        drawings = re.compile(r"^```\n.*?^```$", re.DOTALL | re.MULTILINE)
        assert "```" not in drawings.sub("", rest), name_of(page)


# Families of names have lists of their own on the reference pages; see test_reference_lists.
PUBLIC_PACKAGES = [name for name in dir(sfumato) if isinstance(getattr(sfumato, name), ModuleType)]
PACKAGES_OF_NAMES = [*PUBLIC_PACKAGES, "anatomize", "anonymize", "certificates", "criteria", "measurement", "minimize"]
WITHOUT_EXAMPLE = {
    "MissingExtraError": "its example would need an environment in which a package is absent",
    "spark": "a session starts a Java machine; docs/spark.md has the examples, which tests/spark/test_page.py runs",
}


def described_names() -> list[str]:
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCUMENTATION / "reference").glob("*.md"))
    return re.findall(r"^::: ([\w.]+)$", pages, re.MULTILINE)


def object_of(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def test_the_reference_has_every_public_name():
    described = {id(object_of(name)) for name in described_names()}
    wanted = {f"sfumato.{name}" for name in dir(sfumato) if name not in ("__version__", *PUBLIC_PACKAGES)}
    for package in PACKAGES_OF_NAMES:
        names = getattr(importlib.import_module(f"sfumato.{package}"), "__all__", ())
        wanted |= {f"sfumato.{package}.{name}" for name in names if not name.isupper()}
    assert [name for name in sorted(wanted) if id(object_of(name)) not in described] == []


def test_the_reference_has_every_name_once():
    assert [name for name, count in Counter(described_names()).items() if count > 1] == []


def has_example(documented: object) -> bool:
    text = documented.__doc__ if inspect.isroutine(documented) else vars(documented).get("__doc__")
    return re.search(r"^ *Examples\n *--------\n *>>> ", text or "", re.MULTILINE) is not None


@pytest.mark.parametrize("name", [name for name in dir(sfumato) if name != "__version__"])
def test_every_public_name_has_an_example_of_its_own(name):
    assert has_example(getattr(sfumato, name)) is (name not in WITHOUT_EXAMPLE)


def test_the_site_lists_every_command_and_setting():
    place = importlib.util.spec_from_file_location("docs_site", REPOSITORY / "scripts" / "docs_site.py")
    site = importlib.util.module_from_spec(place)
    place.loader.exec_module(site)
    commands = site.on_page_markdown("<!-- list: commands -->")
    for command in application.registered_commands:
        assert f"## sfumato {command.callback.__name__}\n" in commands
    assert "| `--min-k NUMBER` |" in commands
    assert "None" not in commands
    assert [word for word in ("[bold]", "`True`", " ...`", "```sh\n```") if word in commands] == []
    settings = site.on_page_markdown("<!-- list: policy settings -->")
    for section, there in SECTIONS.items():
        assert f"## `[{section}]`" in settings
        assert [name for name in there if f"| `{name}` |" not in settings] == []

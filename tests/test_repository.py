# SPDX-License-Identifier: Apache-2.0
"""The repository keeps its own promises: links lead somewhere, versions agree, nothing private slips in."""

import importlib.util
import re
import stat
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
FOLDERS = (".ci", "benchmarks", "docs", "scripts", "src", "studies", "tests")
TEXT_SUFFIXES = {"", ".cfg", ".csv", ".json", ".md", ".py", ".toml", ".txt", ".yaml", ".yml"}
ADR_HEADINGS = ["Context", "Decision", "Options refused", "Consequences", "What would change our mind"]

# Spelled in pieces, or this file would be the first to break its own rules.
MACHINE_PATHS = re.compile(r"(?<![\w.~-])/(" + "work|root|tmp|home|Users" + r")/\w")
REGISTRY_HOSTS = re.compile("python" + r"hosted\.org|py" + r"pi\.org|index" + "-url|find" + "-links", re.IGNORECASE)


def read(path: Path | str) -> str:
    return (REPOSITORY / path).read_text(encoding="utf-8")


def text_files() -> list[Path]:
    found = [path for path in REPOSITORY.iterdir() if path.is_file()]
    for folder in FOLDERS:
        found += [path for path in (REPOSITORY / folder).rglob("*") if path.is_file()]
    return sorted(path for path in found if path.suffix in TEXT_SUFFIXES and not is_generated(path))


def is_generated(path: Path) -> bool:
    if path.name == ".git":  # in a linked worktree, a file that says where the repository is
        return True
    folders = path.relative_to(REPOSITORY).parts[:-1]
    return any(folder == "__pycache__" or (folder.startswith(".") and folder != ".ci") for folder in folders)


def markdown_files() -> list[Path]:
    return [path for path in text_files() if path.suffix == ".md"]


def shown(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{shown(path)}:{number}"
        for path in text_files()
        for number, line in enumerate(read(path).splitlines(), start=1)
        if pattern.search(line)
    ]


def anchors_of(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_search_sees_the_files_it_should():
    seen = {shown(path) for path in text_files()}
    assert {"README.md", "Makefile", ".ci/run", "src/sfumato/__init__.py", "tests/test_repository.py"} <= seen
    assert MACHINE_PATHS.search("open('/" + "home/me/data.csv')")
    assert not MACHINE_PATHS.search("src/" + "home/me")
    assert REGISTRY_HOSTS.search("https://PyPI" + ".org/project")


def test_no_file_names_a_path_of_somebodys_machine():
    assert lines_matching(MACHINE_PATHS) == []


def test_no_file_names_a_package_registry():
    assert lines_matching(REGISTRY_HOSTS) == []


def test_the_version_has_one_source():
    assert "version" in tomllib.loads(read("pyproject.toml"))["project"]["dynamic"]  # of sfumato.__version__
    assert not re.search(r"^version:", read("CITATION.cff"), re.MULTILINE)


def test_the_description_of_the_package_has_links_that_work_outside_the_repository():
    """Package indexes show the README alone: what it links to is not beside it."""
    own = importlib.util.spec_from_file_location("setup_of_package", REPOSITORY / "setup.py")
    module = importlib.util.module_from_spec(own)
    own.loader.exec_module(module)
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", module.with_full_links(read("README.md")))
    assert {link.partition(":")[0] for _, link in links} == {"https"}
    kinds = {"!": "/raw/main/", "": "/blob/main/"}
    paths = [link.removeprefix(f"{module.REPOSITORY}{kinds[picture]}") for picture, link in links]
    assert len(paths) > 20 and all((REPOSITORY / path).exists() for path in paths)


def test_constraints_are_names_and_exact_versions():
    pins = [line for line in read("constraints.txt").splitlines() if not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", pin)] == []
    names = [re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower() for pin in pins]
    assert len(set(names)) == len(names)


def test_every_direct_dependency_is_pinned():
    document = tomllib.loads(read("pyproject.toml"))
    project = document["project"]
    groups = [*project["optional-dependencies"].values(), *document["dependency-groups"].values()]
    wanted = project["dependencies"] + [requirement for group in groups for requirement in group]
    names = {re.match(r"[A-Za-z0-9._-]+", requirement)[0] for requirement in wanted}
    pinned = set(re.findall(r"^([\w.-]+)==", read("constraints.txt"), flags=re.MULTILINE))
    assert names - pinned == set()


def test_every_python_file_names_the_licence_first():
    sources = [path for path in text_files() if path.suffix == ".py" and path.stat().st_size > 0]
    unmarked = [shown(path) for path in sources if not read(path).startswith("# SPDX-License-Identifier: ")]
    assert unmarked == []


def test_the_licence_is_the_whole_apache_text():
    text = read("LICENSE")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_decision_records_have_the_five_headings_and_count_up():
    records = sorted((REPOSITORY / "docs" / "adr").glob("[0-9]*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    assert len(records) >= 5
    for record in records:
        headings = re.findall(r"^## (.+)$", read(record), flags=re.MULTILINE)
        assert headings == ADR_HEADINGS, record.name


@pytest.mark.parametrize("page", markdown_files(), ids=shown)
def test_every_relative_link_leads_somewhere(page):
    text = re.sub(r"```.*?```", "", read(page), flags=re.DOTALL)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(read(target))):
            broken.append(link)
    assert broken == []


def test_every_make_target_the_pages_name_exists():
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    named = {
        (shown(page), target)
        for page in [REPOSITORY / ".ci" / "run", *markdown_files()]
        for code in re.findall(r"`[^`]+`|^\s*make .*$", read(page), flags=re.MULTILINE)
        for target in re.findall(r"\bmake ([a-z-]+)", code)
    }
    assert {("README.md", "demo"), ("README.md", "test"), (".ci/run", "check")} <= named
    assert {name for name in named if name[1] not in targets} == set()


def test_what_continuous_integration_runs_is_executable():
    assert (REPOSITORY / ".ci" / "run").stat().st_mode & stat.S_IXUSR


def test_an_expected_failure_that_passes_is_an_error(pytestconfig):
    assert pytestconfig.getini("xfail_strict") is True

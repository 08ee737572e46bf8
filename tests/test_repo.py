"""The repository as a whole: versions agree, the lock is complete, and every promise of the README has its file."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PYTHONS = ("3.11.7", "3.12.1", "3.13.0")


def lock_lines(python: str | None = None) -> dict[str, Version]:
    """The locked version of each package, on this platform, with ``python`` instead of the running one."""
    environment = {"python_full_version": python, "python_version": python.rpartition(".")[0]} if python else {}
    locked: dict[str, Version] = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            (pin,) = requirement.specifier
            assert pin.operator == "==", line
            if requirement.marker is None or requirement.marker.evaluate(environment):
                assert requirement.name not in locked, f"{requirement.name} is locked twice"
                locked[canonicalize_name(requirement.name)] = Version(pin.version)
    return locked


@pytest.mark.parametrize("python", PYTHONS)
def test_lock_holds_everything_pyproject_asks_for(python: str) -> None:
    locked = lock_lines(python)
    for line in [*PROJECT["dependencies"], *EXTRAS["book"], *EXTRAS["test"]]:
        requirement = Requirement(line)
        assert locked[canonicalize_name(requirement.name)] in requirement.specifier, line


def test_installed_packages_are_the_locked_ones() -> None:
    installed = {canonicalize_name(d.metadata["Name"]): Version(d.version) for d in metadata.distributions()}
    differ = {
        name: (str(version), str(installed.get(name)))
        for name, version in lock_lines().items()
        if installed.get(name) != version
    }
    assert differ == {}, "(locked, installed); run `make .venv`"


def test_run_time_needs_three_packages_only() -> None:
    assert {Requirement(line).name for line in PROJECT["dependencies"]} == {"numpy", "ml_dtypes", "matplotlib"}


def test_conda_environment_is_the_locked_set() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda, (pip,) = environment["dependencies"][:-1], [part["pip"] for part in environment["dependencies"][-1:]]
    assert any(str(line).startswith("python=3.12") for line in conda)
    assert "-r requirements.lock" in pip
    assert "mlir_aie==1.4.2" in pip


def test_no_top_level_module_shadows_the_toolchain() -> None:
    top = {path.stem for folder in (ROOT, ROOT / "utils") for path in folder.iterdir()}
    assert not top & {"aie", "air", "pyxrt"}
    run = subprocess.run(
        [sys.executable, "-c", "import aie"], cwd=ROOT / "tests", capture_output=True, text=True, check=False
    )
    real = {name for name in ("mlir_aie",) if any(d.metadata["Name"] == name for d in metadata.distributions())}
    assert real or "ModuleNotFoundError" in run.stderr


def test_packages_import_from_anywhere(tmp_path: Path) -> None:
    code = "import designs, npulab, npusim; print(*(m.__path__[0] for m in (designs, npulab, npusim)), sep='\\n')"
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    expected = [str(ROOT / name) for name in ("designs", "utils/npulab", "utils/npusim")]
    assert run.stdout.splitlines()[-3:] == expected


def test_console_command() -> None:
    command = Path(sys.executable).parent / "npulab"
    run = subprocess.run([command, "student", "--help"], capture_output=True, text=True, check=True)
    assert "BEGIN SOLUTION" in run.stdout


def files(*suffixes: str) -> list[Path]:
    """The repository's own files with one of the suffixes (a name without a dot is its own suffix)."""
    places = [ROOT.iterdir(), *((ROOT / name).rglob("*") for name in (".ci", "book", "designs", "tests", "utils"))]
    found = (path for place in places for path in place if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path for path in found if (path.suffix or path.name) in suffixes)


@pytest.mark.parametrize("page", files(".md"), ids=lambda path: str(path.relative_to(ROOT)))
def test_local_links_of_the_text_files_exist(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_that_the_text_names_exist(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([.\w-]+):", makefile, re.MULTILINE)) | {".venv"}
    named = set(re.findall(r"`make ([.\w-]+)", (ROOT / name).read_text()))
    assert named <= targets


def recipe(target: str, *arguments: str) -> str:
    """What ``make`` would run for a target, without what installs the environment."""
    command = ["make", "--dry-run", "--no-print-directory", "--assume-old=.venv/.installed", target, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_make_clean_leaves_what_students_wrote() -> None:
    assert "_build" in recipe("clean")
    assert not re.search(r"\bstudent\b", recipe("clean") + recipe("distclean"))


def test_make_student_writes_and_opens_the_student_versions() -> None:
    write, opens = recipe("student", "ARGS=--port 9000").splitlines()
    assert write.endswith("-m npulab student book")
    assert opens.endswith("-m jupyterlab --port 9000 student")


def test_make_book_says_that_it_checks_the_site() -> None:
    lines = recipe("book").splitlines()
    assert [word for line in lines for word in ("npulab book", "echo 'Checking the site (about a minute)", "pytest") if word in line] == [
        "npulab book",
        "echo 'Checking the site (about a minute)",
        "pytest",
    ]


def test_citation_agrees_with_the_project() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["version"]
    assert citation["cff-version"] == "1.2.0"
    assert {"title", "authors", "message"} <= citation.keys()


def test_licences_are_whole() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()[:200]
    assert "Section 8 – Interpretation" in (ROOT / "LICENSE-CC-BY-4.0").read_text()


def test_no_registry_is_named() -> None:
    """The files work with whatever package index the machine is set up for."""
    hosts = [".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"))]
    named = [
        str(path.relative_to(ROOT))
        for path in files(".lock", ".toml", ".yml", ".cff", "Makefile", "run", ".md", ".py", ".ipynb")
        if any(host in path.read_text() for host in hosts)
    ]
    assert named == []

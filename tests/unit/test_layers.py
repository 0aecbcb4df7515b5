"""The picture of the layers in the book has the packages of the import contract, from top to bottom."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRACT = "arrows between the rooms run one way"
ALONE = "http"  # has a contract of its own: it knows none of the domain packages


def drawn_layers() -> list[set[str]]:
    """The packages of each line of the picture; a line that begins with a blank goes on with the meaning."""
    page = (ROOT / "pkgrepo/docs/architecture.md").read_text()
    lines = page.split("```\n")[1].splitlines()
    return [set(line.partition("  ")[0].split(" | ")) for line in lines if line and not line.startswith(" ")]


def contract_layers() -> list[set[str]]:
    """The packages of each layer of the contract."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [each["layers"] for each in linter["contracts"] if each["name"] == CONTRACT]
    return [{name.removeprefix("pkgrepo.") for name in layer.split(" | ")} for layer in layers]


def test_the_picture_is_that_of_the_import_contract():
    assert drawn_layers() == [*contract_layers(), {ALONE}]


def test_every_package_is_in_the_picture():
    packages = {each.parent.name for each in (ROOT / "pkgrepo").glob("*/__init__.py")}
    assert packages - {name.partition(".")[0] for layer in drawn_layers() for name in layer} == set()


def test_there_is_one_picture():
    pages = [each.read_text() for each in (ROOT / "README.md", ROOT / "pkgrepo/README.md")]
    assert all("architecture.md" in page and "\ntap" not in page for page in pages)

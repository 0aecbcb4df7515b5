"""The layers in the book are those of the import contract, from top to bottom; the client is loaded alone."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRACT = "arrows between the rooms run one way"
ALONE = "http"  # has a contract of its own: it knows none of the domain packages
CLIENT = "the client can be shipped without the server"
LOAD_CLIENT = """
import importlib, pkgutil, sys
sys.modules["fcntl"] = sys.modules["resource"] = None  # as on systems that have none
import pkgrepo.client
for each in pkgutil.walk_packages(pkgrepo.client.__path__, "pkgrepo.client."):
    importlib.import_module(each.name)
print(*sys.modules)
"""


def contract(name: str) -> dict[str, list[str]]:
    """The contract with this name."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (found,) = [each for each in linter["contracts"] if each["name"] == name]
    return found


def drawn_layers() -> list[set[str]]:
    """The packages of each line of the picture; a line that begins with a blank goes on with the meaning."""
    page = (ROOT / "pkgrepo/docs/architecture.md").read_text()
    lines = page.split("```text\n")[1].split("```\n")[0].splitlines()
    return [set(line.partition("  ")[0].split(" | ")) for line in lines if line and not line.startswith(" ")]


def contract_layers() -> list[set[str]]:
    """The packages of each layer of the contract."""
    return [{name.removeprefix("pkgrepo.") for name in each.split(" | ")} for each in contract(CONTRACT)["layers"]]


def test_the_picture_is_that_of_the_import_contract():
    assert drawn_layers() == [*contract_layers(), {ALONE}]


def test_every_package_is_in_the_picture():
    packages = {each.parent.name for each in (ROOT / "pkgrepo").glob("*/__init__.py")}
    assert packages - {name.partition(".")[0] for layer in drawn_layers() for name in layer} == set()


def test_there_is_one_picture():
    pages = [each.read_text() for each in (ROOT / "README.md", ROOT / "pkgrepo/README.md")]
    assert all("architecture.md" in page and "\ntap" not in page for page in pages)


def test_the_contract_of_the_client_has_all_that_is_not_below_it():
    layers = contract_layers()
    below = set().union(*layers[layers.index({"client"}) :]) | {"tls_context"}
    every = {each.stem for each in (ROOT / "pkgrepo").glob("*.py")} - {"__init__"}
    every |= {each.parent.name for each in (ROOT / "pkgrepo").glob("*/__init__.py")}
    assert {f"pkgrepo.{name}" for name in every - below} == set(contract(CLIENT)["forbidden_modules"])
    assert "ignore_imports" not in contract(CLIENT)


def test_the_client_is_loaded_without_the_server():
    done = subprocess.run([sys.executable, "-c", LOAD_CLIENT], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "pkgrepo.client.twins.bucket" in loaded
    assert loaded & set(contract(CLIENT)["forbidden_modules"]) == set()

"""What makes something visible takes an L{Admitted}, which the gate alone makes, and which holds for what was asked."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from attrs import evolve

import pkgrepo
from pkgrepo.auth.permissions import admission
from pkgrepo.auth.permissions.admission import Road, admit_server, join
from pkgrepo.model import Actor
from pkgrepo.model.admission import Admitted, path_name
from pkgrepo.model.repositories import make_placeholder

SOURCES = Path(pkgrepo.__file__).parent
ROOMS = ("formats", "gateway", "importing", "management", "mirroring", "proxy", "replication", "repositories")
# The functions of the catalog that add rows which clients see, by the name of their module and their own.
ADDING = {
    "files": {"add_file", "insert_file", "replace_file"},
    "index_documents": {"put_fragment"},
    "linked_blobs": {"link_blob"},
    "manifests": {"add_manifest"},
    "release_batches": {"add_files", "add_packages", "add_versions"},
    "tags": {"set_tag"},
    "versions": {"set_state", "set_states"},
}
# Functions without the value, and why: they are a part of a command that takes it, or of no road into sight.
EXEMPT: Mapping[str, str] = {
    "formats/npm/indexing.py:__call__": "a part of a publish, whose value the indexer has as its actor",
    "formats/npm/indexing.py:_ensure_latest": "latest follows from the versions that were published and removed",
    "repositories/layout/restore.py:restore_kept": "what a reindex finds of documents that were published before",
    "repositories/publish/index.py:put_fragment": "documents of what a command publishes",
    "repositories/publish/package_changes.py:_set_state": "yanks, and the states of the command that takes the value",
    "repositories/publish/releases.py:_write_packages": "a part of the command that publishes releases",
}
HERE = make_placeholder(1, "main", "here", "npm")
ACTOR = Actor(7, "ann")


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def adds(function: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.attr in ADDING.get(node.value.id, ())
        for node in ast.walk(function)
    )


def takes_value(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function takes the value, or is a road that makes one for the server's own work."""
    arguments = (*function.args.args, *function.args.kwonlyargs)
    makes = any(isinstance(node, ast.Name) and node.id == "admit_server" for node in ast.walk(function))
    return makes or any(
        each.annotation is not None and "Admitted" in ast.unparse(each.annotation) for each in arguments
    )


def test_functions_that_add_what_clients_see_take_the_value() -> None:
    found, adding = set(), set()
    for room in ROOMS:
        for path in sorted((SOURCES / room).rglob("*.py")):
            for each in functions(ast.parse(path.read_text())):
                if adds(each):
                    adding.add(name := f"{path.relative_to(SOURCES)}:{each.name}")
                    if not takes_value(each):
                        found.add(name)
    assert len(adding) > 10
    assert found == EXEMPT.keys()


def test_the_catalog_has_the_functions_that_are_looked_for() -> None:
    for path in (SOURCES / "storage" / "catalog").rglob("*.py"):
        there = {each.name for each in functions(ast.parse(path.read_text()))}
        assert not ADDING.get(path.stem, set()) - there, path


def test_only_the_gate_makes_the_value_and_the_roads_without_rules_are_named() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Admitted(authority_id=1, names=None)  # type: ignore[abstract]
    used: dict[str, set[str]] = {}
    for path in SOURCES.rglob("*.py"):
        text = path.read_text()
        if "_Admitted" in text:
            assert path == Path(admission.__file__)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Road":
                used.setdefault(node.attr, set()).add(path.relative_to(SOURCES).parts[0])
    assert used == {
        "PROXY": {"proxy", "formats"},
        "REPLICA": {"replication"},
        "REINDEX": {"repositories"},
        "CONVERSION": {"formats"},
        "IMPORT": {"importing"},
        "LISTS": {"formats"},
    }
    assert used.keys() == {each.name for each in Road}


def test_the_value_holds_for_what_was_asked_alone() -> None:
    made = evolve(admit_server(Road.IMPORT, HERE, ACTOR), names=frozenset({"demo", path_name("a/b.xml")}))
    assert (made.name, made.user_id, made.by()) == ("ann", 7, "import")
    made.check(HERE, "demo", "/a/b.xml")
    for wrong in ("other", "a/b.xml", "/a"):
        with pytest.raises(AssertionError, match="a rule was not asked"):
            made.check(HERE, wrong)
    with pytest.raises(AssertionError):
        made.check(make_placeholder(2, "main", "there", "npm"), "demo")
    stage = evolve(HERE, id=3, stage="uid", parent=HERE)
    made.check(stage, "demo")
    staged = admit_server(Road.IMPORT, stage)
    staged.check(stage, "demo")
    with pytest.raises(AssertionError):  # what may be staged is not published
        staged.check(HERE, "demo")


def test_values_of_one_repository_are_joined() -> None:
    one, other = (evolve(admit_server(Road.IMPORT, HERE), names=frozenset({each})) for each in "ab")
    join([one, other]).check(HERE, "a", "b")
    with pytest.raises(AssertionError):
        join([one, admit_server(Road.IMPORT, make_placeholder(2, "main", "there", "npm"))])

"""What upstreams are told of an audit, and what is taken from their answers."""

import json
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.audit import upstream_audits
from pkgrepo.proxy.uncached import UncachedQuestion

TREE = {
    "name": "our-project",
    "version": "1.0.0",
    "metadata": {"cwd": "/home/somebody"},
    "requires": {"a": "^1", "own": "^1"},
    "dependencies": {
        "a": {"version": "1.0.0", "dev": True, "requires": {"own": "1"}, "dependencies": {"b": {"version": "2.0.0"}}},
        "own": {"version": "1.0.0", "dependencies": {"c": {"version": "1.0.0"}}},
        "odd": 7,
    },
}


def told(question: UncachedQuestion) -> Any:
    assert question.body is not None
    return json.loads(question.body)


def test_private_packages_are_not_asked_about() -> None:
    question = upstream_audits.bulk_question({"a": ["1.0.0"], "own": ["1.0.0"]}, {"own"})
    assert told(question) == {"a": ["1.0.0"]}


def test_answers_about_other_packages_are_ignored() -> None:
    body = json.dumps({"a": [1], "own": [2], "unasked": [3]}).encode()
    assert list(upstream_audits.read_bulk_answer(body, ["a", "own"], {"own"})) == ["a"]


def test_tree_is_told_without_private_packages_and_the_project() -> None:
    found = told(upstream_audits.quick_question(TREE, {"own"}))
    assert found["requires"] == {"a": "^1"}
    assert found["dependencies"] == {
        "a": {
            "version": "1.0.0",
            "dev": True,
            "requires": {},
            "dependencies": {"b": {"version": "2.0.0", "requires": {}, "dependencies": {}}},
        }
    }
    assert "our-project" not in json.dumps(found)
    assert "somebody" not in json.dumps(found)


def test_names_in_a_tree_are_those_of_all_levels() -> None:
    assert upstream_audits.names_in(TREE) == {"a", "b", "c", "own", "odd"}
    assert upstream_audits.names_in({"dependencies": [], "requires": True}) == set()


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b'{"a":"\xff"}', b"{" * 9999])
def test_answer_that_cannot_be_read_is_none(body: bytes) -> None:
    assert upstream_audits.read_bulk_answer(body, ["a"], set()) == {}
    assert upstream_audits.read_quick_answer(body) is None


def test_answer_about_a_tree_has_advisories_and_counts() -> None:
    assert upstream_audits.read_quick_answer(b'{"advisories":{}}') is None
    assert upstream_audits.read_quick_answer(b'{"advisories":{},"metadata":{}}') is not None


@pytest.mark.parametrize("body", [b"[]", b"7", b"{"])
def test_tree_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        upstream_audits.read_whole_tree(body)

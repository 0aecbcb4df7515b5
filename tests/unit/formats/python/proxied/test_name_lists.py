"""What is made of the lists of projects of upstreams."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.index.pages import NAME_LIST
from pkgrepo.formats.python.proxied.normaliser import NAMES, normalise_list
from pkgrepo.proxy.parts.values import Context


def list_of(names: Iterable[str]) -> bytes:
    return json.dumps({"meta": {"api-version": "1.4"}, "projects": [{"name": name} for name in names]}).encode()


def read_names(source: bytes) -> list[list[str]]:
    entries = normalise_list(source, Context("list of projects", "https://index.example/simple/")).entries
    return [name for entry in entries for name in json.loads(entry.fragments[NAME_LIST])]


def test_a_list_has_keys_and_names_in_order() -> None:
    found = [["b-b", "B.b"], ["c", "c"]]
    assert read_names(list_of(["c", "B.b", "../x", "é", ""])) == found
    anchors = "<a href='/simple/c/'>c</a> <a href='B.b'>x</a> <a href='../'>up</a> <a>none</a>"
    assert read_names(anchors.encode()) == found


def test_a_long_list_has_several_entries() -> None:
    many = [f"n{number:04}" for number in range(2 * NAMES + 1)]
    entries = [*normalise_list(list_of(many), Context("", "")).entries]
    assert [entry.key for entry in entries] == ["n0000", f"n{NAMES:04}", f"n{2 * NAMES:04}"]
    assert read_names(list_of(many)) == [[name, name] for name in many]


@pytest.mark.parametrize("source", [b"", b"{}", b"<html>Sign in</html>", list_of([]).replace(b"1.4", b"2.0"), b"{["])
def test_what_is_no_list_is_refused(source: bytes) -> None:
    with pytest.raises(Invalid):
        read_names(source)

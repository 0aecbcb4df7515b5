"""What the configuration of an image says of its user."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.inside import find_configuration
from pkgrepo.formats.container.proxied.labels import parse_labels

ROOTFS = {"type": "layers", "diff_ids": []}
ROOT, ANOTHER = frozenset({"root_user"}), frozenset[str]()


def words_of(data: bytes) -> Any:
    found = find_configuration(data)
    return None if found is None else found.words


def said(config: Any, **more: Any) -> Any:
    return words_of(json.dumps({"rootfs": ROOTFS, "config": config, **more}).encode())


@pytest.mark.parametrize("user", ["", "root", "0", "0:0", "root:app", "00", "+0", " 0", ":5", "root:"])
def test_no_user_and_all_names_of_root_are_root(user: str) -> None:
    assert said({"User": user}) == said({"user": user}) == said(None, CONFIG={"USER": user}) == ROOT
    assert said({"User": "app", "\u017ftate": 0}, Config={"u\u017fer": user}) == ROOT


@pytest.mark.parametrize("user", ["app", "1000", "1000:0", "10", "nobody:root", "rooty", "Root"])
def test_another_user_is_not(user: str) -> None:
    assert said({"User": user}) == ANOTHER


@pytest.mark.parametrize("config", [None, {}, {"User": None}, {"User": 1000}, [], "x"])
def test_without_a_user_that_can_be_read_it_is_root(config: Any) -> None:
    assert said(config) == ROOT


def test_the_case_of_keys_hides_no_user() -> None:
    assert said({"User": "app", "user": "root"}) == said({"user": "root", "User": "app"}) == ROOT
    assert said({"User": "app"}, Config={"User": "0"}) == ROOT
    assert said({"user": "app"}) == said(None, Config={"User": "app"}) == ROOT  # to programs that want the case
    data = '{"RootF\u017f":{"DIFF_IDS":[]},"config":{"User":"1","u\u017fer":"0"}}'
    assert words_of(data.encode()) == ROOT


def test_keys_that_no_program_takes_for_others_say_nothing() -> None:
    data = '{"rootfs":{"diff_ids":[]},"con\ufb01g":{"User":"app"}}'
    assert words_of(data.encode()) == said({"u\u00dfer": "app"}) == ROOT
    assert said({"User": "app", "u\u00dfer": "root"}) == ANOTHER


@pytest.mark.parametrize(
    ("settings", "labels"),
    [
        ('"config":{"Labels":{"a":"b"}}', {"a": "b"}),
        ('"config":{"labels":{"a":"b"}}', {"a": "b"}),
        ('"CONFIG":{"LABELS":{"a":"b","A":"c"}}', {"a": "b", "A": "c"}),
        ('"config":{"Label\u017f":{"a":"b"}}', {"a": "b"}),
        ('"config":{"Labels":{"a":"b"},"labels":{}}', {"a": "b"}),
        ('"config":{"Labels":{"a":"b"},"labels":null}', {"a": "b"}),
        ('"config":{"Labels":{"a":"b"}},"Config":{"Labels":{"c":"d"}}', {"a": "b", "c": "d"}),
        ('"config":{"Labels":{"a":"b"}},"Config":null', {"a": "b"}),
        ('"config":{"Labels":{"a":null}}', {"a": ""}),
        ('"config":{"Labels":null}', {}),
        ('"config":null', {}),
        ('"con\ufb01g":{"Labels":{"a":"b"}}', {}),
        # where programs differ
        ('"config":{"Labels":{"a":"b"},"labels":{"a":"c"}}', None),
        ('"config":{"Labels":{"a":"b"}},"config":{}', None),
        ('"config":{"Labels":{"a":"b"},"Labels":{}}', None),
        ('"config":{"Labels":{"a":"b","a":"c"}}', None),
        # what docker does not run
        ('"config":{"Labels":{"a":1}}', None),
        ('"config":{"Labels":["a"]}', None),
        ('"config":["a"]', None),
        ('"config":{"Labels":{"a":"b"}', None),
    ],
)
def test_labels_are_those_that_any_program_could_read(settings: str, labels: Any) -> None:
    assert parse_labels(f'{{"rootfs":{{"diff_ids":[]}},{settings}}}'.encode()) == labels


@pytest.mark.parametrize("data", [b"{}", b'{"name":"chart"}', b'{"rootfs":{}}', b'{"rootfs":null}'])
def test_what_names_no_layers_is_no_image(data: bytes) -> None:
    assert words_of(data) is None


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"\xff", b"{", b'"x"'),
        b'{"rootfs":{"diff_ids":[]},"rootfs":{}}',
        b'{"a":[' + b"0," * 100_001 + b"0]}",
    ],
)
def test_what_readers_may_not_agree_on_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        words_of(data)


@pytest.mark.parametrize(
    ("config", "runs"),
    [
        ({"Entrypoint": ["/run"], "Cmd": ["-x", "y"]}, ("/run", "-x", "y")),
        ({"Cmd": ["sh"]}, ("sh",)),
        ({"ENTRYPOINT": ["/evil"], "cmd": ["-x"]}, ("/evil", "-x")),
        ({"Entrypoint": ["/run"], "entrypoint": ["/evil"]}, ("/evil",)),  # the last one counts
        ({"Entrypoint": ["/run"], "entrypoint": None, "Cmd": ["sh"]}, ("sh",)),
        ({"Entrypoint": "/run", "Cmd": [1, "x", None]}, ("x",)),
        ({"Entrypoint": ["x" * 600] * 60}, ("x" * 500,) * 50),
        (None, ()),
        ([], ()),
    ],
)
def test_what_it_runs_is_read_as_go_reads_it(config: Any, runs: tuple[str, ...]) -> None:
    found = find_configuration(json.dumps({"rootfs": ROOTFS, "config": config}).encode())
    assert found is not None
    assert found.runs == runs

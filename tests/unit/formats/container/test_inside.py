"""What the configuration of an image says of its user."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.inside import words_of_configuration

ROOTFS = {"type": "layers", "diff_ids": []}
ROOT, ANOTHER = frozenset({"root_user"}), frozenset[str]()


def said(config: Any, **more: Any) -> Any:
    return words_of_configuration(json.dumps({"rootfs": ROOTFS, "config": config, **more}).encode())


@pytest.mark.parametrize("user", ["", "root", "0", "0:0", "root:app", "00", "+0", " 0", ":5", "root:"])
def test_no_user_and_all_names_of_root_are_root(user: str) -> None:
    assert said({"User": user}) == said({"user": user}) == said(None, CONFIG={"USER": user}) == ROOT


@pytest.mark.parametrize("user", ["app", "1000", "1000:0", "10", "nobody:root", "rooty", "Root"])
def test_another_user_is_not(user: str) -> None:
    assert said({"User": user}) == ANOTHER


@pytest.mark.parametrize("config", [None, {}, {"User": None}, {"User": 1000}, [], "x"])
def test_without_a_user_that_can_be_read_it_is_root(config: Any) -> None:
    assert said(config) == ROOT


def test_the_case_of_keys_hides_no_user() -> None:
    assert said({"User": "app", "user": "root"}) == said({"user": "root", "User": "app"}) == ROOT
    assert said({"User": "app"}, Config={"User": "0"}) == ROOT
    assert words_of_configuration(b'{"RootFS":{"DIFF_IDS":[]},"config":{"u\xc5\xbfer":"app"}}') == ANOTHER


@pytest.mark.parametrize("data", [b"{}", b'{"name":"chart"}', b'{"rootfs":{}}', b'{"rootfs":null}'])
def test_what_names_no_layers_is_no_image(data: bytes) -> None:
    assert words_of_configuration(data) is None


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
        words_of_configuration(data)

"""Configurations of container repositories."""

from __future__ import annotations

from typing import Any

import pytest
from zope.interface.verify import verifyObject

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.configuration import validate
from pkgrepo.formats.container.format import ContainerFormat
from pkgrepo.formats.container.uploads.ranges import ChunkRange, parse_chunk_range, render_received
from pkgrepo.http.answering.answers import Refusal
from pkgrepo.interfaces import IFormat

RULES = {
    "allow_tag_overwrite": False,
    "must_be_project_member": False,
    "must_use_auth_token_for_push": False,
    "require_content_trust": False,
}


def test_the_format_keeps_the_contract_of_formats() -> None:
    verifyObject(IFormat, ContainerFormat())


def test_defaults_are_filled_in_exactly() -> None:
    assert validate({"type": "Hosted"}) == ({"type": "Hosted", "push_rules": RULES}, {})


def test_what_stands_beside_the_rules_is_kept() -> None:
    fixed, settings = validate(
        {"push_rules": {"allow_tag_overwrite": True}, "policy": {"allow_sparse": True}, "x_note": 1, "page": "hello"}
    )
    assert fixed == {"type": "Hosted", "push_rules": RULES | {"allow_tag_overwrite": True}}
    assert settings["x_note"] == 1
    assert settings["page"] == "hello"
    assert settings["policy"]["allow_sparse"] is True


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"type": "Proxy", "config": {"upstream_url": "https://up.example/"}}, "/type"),
        ({"push_rules": {"allow_tag_overwrite": "yes"}}, "/push_rules/allow_tag_overwrite"),
        ({"push_rules": {"unknown": True}}, "/push_rules/unknown"),
        ({"unknown": True}, "/unknown"),
    ],
)
def test_what_is_wrong_or_not_available_is_refused_where_it_stands(config: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        validate(config)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("value", [b"0-99", b"bytes 0-99/200", b"bytes=0-99", b"0-99/*", b" 0-99 "])
def test_ranges_of_chunks_are_read_in_every_spelling(value: bytes) -> None:
    assert parse_chunk_range(value) == ChunkRange(0, 100)


@pytest.mark.parametrize("value", [b"", b"0", b"-5", b"5-", b"9-3", b"a-b", b"items 0-9"])
def test_malformed_ranges_are_refused(value: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        parse_chunk_range(value)
    assert caught.value.status == 400


def test_nothing_received_is_told_as_a_range_too() -> None:
    assert [render_received(count) for count in (0, 1, 10)] == [b"0-0", b"0-0", b"0-9"]

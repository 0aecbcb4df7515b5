"""Challenges of registries."""

from __future__ import annotations

import pytest

from pkgrepo.formats.container.proxied.registry_client import LONGEST_CHALLENGE, Challenge, parse_challenges

REALM = "https://auth.registry.example/token"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []),
        ("", []),
        ("Basic", [Challenge("basic", {})]),
        ('Basic realm="a, b"', [Challenge("basic", {"realm": "a, b"})]),
        (
            f'Bearer realm="{REALM}",service="up",scope="repository:a/b:pull,push"',
            [Challenge("bearer", {"realm": REALM, "service": "up", "scope": "repository:a/b:pull,push"})],
        ),
        (
            f'Basic realm="x", BEARER Realm = "{REALM}" , error=invalid_token',
            [
                Challenge("basic", {"realm": "x"}),
                Challenge("bearer", {"realm": REALM, "error": "invalid_token"}),
            ],
        ),
        ("Negotiate, Bearer realm=x", [Challenge("negotiate", {}), Challenge("bearer", {"realm": "x"})]),
        (r'Bearer realm="a\"b\\c"', [Challenge("bearer", {"realm": 'a"b\\c'})]),
        ('Bearer realm="first",realm="second"', [Challenge("bearer", {"realm": "first"})]),
        ('Bearer realm="no end', [Challenge("bearer", {"realm": ""})]),
        ('="x"', []),
    ],
)
def test_challenges_are_parsed(value: str | None, expected: list[Challenge]) -> None:
    assert parse_challenges(value) == expected


def test_a_long_field_is_cut() -> None:
    assert parse_challenges("a," * LONGEST_CHALLENGE)[0] == Challenge("a", {})
    assert len(parse_challenges("a," * LONGEST_CHALLENGE)) == LONGEST_CHALLENGE / 2

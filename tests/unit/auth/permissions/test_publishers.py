"""Publishers: which claims they fit, and whether these say who owns the source."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.auth.permissions.publishers import (
    entry_id,
    fits,
    literal_claim,
    names_owner,
    publisher_id,
    recognises,
)

AUDIENCES = ["https://packages.example"]
PUBLISHER: dict[str, Any] = {
    "issuer": "forge",
    "claims": {"repository": "acme/*"},
    "packages": [],
    "actions": ["write"],
}


@pytest.mark.parametrize(
    ("pattern", "text", "fit"),
    [
        ("acme/widget", "acme/widget", True),
        ("acme/*", "acme/widget", True),
        ("acme/*", "acme/", True),
        ("acme/*", "acme", False),
        ("acme/*", "acme/a/b", False),
        ("acme*", "acme-evil/x", False),
        ("acme*", "acme-evil", True),
        ("*/widget", "evil/acme/widget", False),
        ("acme/**", "acme/a/b", True),
        ("acme/***", "acme/a/b", True),
        ("**/widget", "evil/acme/widget", True),
        ("acme/*/.github/workflows/*@**", "acme/x/.github/workflows/r.yml@refs/tags/v1", True),
        ("refs/tags/v?", "refs/tags/v1", True),
        ("refs/tags?v1", "refs/tags/v1", False),
        ("v[0-9]", "v7", True),
        ("v[!0-9]x", "v/x", False),
        ("v[!0-9]x", "vax", True),
        ("a[*]", "a*", True),
        ("a[*]", "ab", False),
        ("a[", "a[", True),
        ("**", "a\nb", True),
        ("", "", True),
        ("a", "", False),
        ("A", "a", False),
        ("a.c", "abc", False),
        ("**", "x" * 2001, False),
    ],
)
def test_patterns_of_claims(pattern: str, text: str, fit: bool) -> None:
    assert fits(pattern, text) is fit


def test_patterns_take_no_time_that_grows_with_their_asterisks() -> None:
    assert not fits("**a" * 100, "a" * 2000 + "b")


@pytest.mark.parametrize("text", ["acme/widget", "a*b?c[d]", "[*]", "**"])
def test_a_literal_fits_itself_alone(text: str) -> None:
    assert fits(literal_claim(text), text)
    assert not fits(literal_claim(text), text + "x")
    assert not fits(literal_claim(text), "x" * len(text))


@pytest.mark.parametrize(
    ("changes", "claims", "recognised"),
    [
        ({}, {}, True),
        ({}, {"aud": ["other", *AUDIENCES]}, True),
        ({}, {"aud": "other"}, False),
        ({}, {"aud": None}, False),
        ({"issuer": "other"}, {}, False),
        ({"audience": "own"}, {}, False),
        ({"audience": "own"}, {"aud": "own"}, True),
        ({"audience": "own"}, {"aud": ["own"]}, True),
        ({"environment": "release"}, {}, False),
        ({"environment": "release"}, {"environment": "release"}, True),
        ({"environment": "rel*"}, {"environment": "relaxed"}, True),
        ({"claims": {"protected": "true"}}, {"protected": True}, True),
        ({"claims": {"number": "1"}}, {"number": 1}, True),
        ({"claims": {"number": "1"}}, {"number": "1"}, True),
        ({"claims": {"contexts": "a"}}, {"contexts": ["a"]}, False),
        ({"claims": {"contexts": ["a"]}}, {"contexts": "a"}, False),
        ({"claims": {"contexts": ["a"]}}, {"contexts": ["b", "a"]}, True),
        ({"claims": {"contexts": ["a", "c"]}}, {"contexts": ["b", "a"]}, False),
        ({"claims": {"contexts": ["a"]}}, {"contexts": [["a"]]}, False),
        ({"claims": {"contexts": ["a"]}}, {}, False),
    ],
)
def test_what_a_publisher_recognises(changes: dict[str, Any], claims: dict[str, Any], recognised: bool) -> None:
    given = {"repository": "acme/widget", "aud": AUDIENCES[0], **claims}
    assert recognises({**PUBLISHER, **changes}, "forge", given, AUDIENCES) is recognised


def test_ids_are_of_what_is_recognised_and_of_the_whole_publisher() -> None:
    plain = {**PUBLISHER, "audience": "", "environment": ""}
    assert publisher_id(plain) == publisher_id(PUBLISHER) == publisher_id({**PUBLISHER, "packages": ["x"]})
    assert entry_id(plain) == entry_id(PUBLISHER) != entry_id({**PUBLISHER, "packages": ["x"]})
    others = [
        {**PUBLISHER, "audience": "a"},
        {**PUBLISHER, "environment": "a"},
        {**PUBLISHER, "issuer": "a"},
        {**PUBLISHER, "claims": {"repository": ["acme/*"]}},
        {**PUBLISHER, "claims": {"repository": "acme/*", "ref": "x"}},
    ]
    assert len({publisher_id(each) for each in [PUBLISHER, *others]}) == 6


@pytest.mark.parametrize(
    ("claims", "named"),
    [
        ({"repository": "acme/*"}, True),
        ({"repository": "acme*"}, False),
        ({"repository": "*/widget"}, False),
        ({"repository": "acme*/widget"}, False),
        ({"repository": "[ab]cme/widget"}, False),
        ({"repository": "*/widget", "repository_owner_id": "123"}, True),
        ({"repository_owner": "acme"}, True),
        ({"ref": "refs/heads/main", "environment": "release"}, False),
        ({"job_workflow_ref": "acme/shared/.github/workflows/release.yml@**"}, False),
        ({"workflow_ref": "acme/widget/.github/workflows/release.yml@**"}, True),
        ({"sub": "repo:acme/widget:*"}, True),
        ({"sub": "repo:*"}, False),
        ({"project_path": "group/**"}, True),
        *(
            ({name: "7"}, False)
            for name in (
                *("run_attempt", "run_number", "run_id", "workflow_sha", "check_run_id", "runner_id", "ci_config_sha"),
                *("job_id", "pipeline_id", "actor_id", "unheard_of"),
            )
        ),
        ({"project_id": "7"}, True),
        ({"oidc.circleci.com/project-id": "7"}, True),
        ({"ci_config_ref_uri": "gitlab.example/*/x//.gitlab-ci.yml@**"}, False),
        ({"oidc.circleci.com/vcs-origin": "github.com/*"}, False),
        ({"oidc.circleci.com/vcs-origin": "github.com/acme/*"}, True),
    ],
)
def test_claims_that_say_who_owns_the_source(claims: dict[str, str], named: bool) -> None:
    assert names_owner(claims) is named

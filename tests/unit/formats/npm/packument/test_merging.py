"""Packuments merged from several repositories, and what is selected of their parts."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from attrs import evolve

from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.packument.document import (
    FULL,
    SHORT,
    TIME,
    Top,
    full_fragment,
    revision,
    short_fragment,
    splice_full,
    splice_short,
    time_fragment,
)
from pkgrepo.formats.npm.packument.requests import find_fragment, read_tags
from pkgrepo.formats.npm.packument.splicing import splice
from pkgrepo.model import Fragment
from pkgrepo.proxy.format import MemberParts
from pkgrepo.repositories.policy.refusals import Withheld
from pkgrepo.repositories.publish.splicing import BASE
from pkgrepo.storage.catalog.rows import to_ms

AT = datetime(2026, 3, 4, tzinfo=UTC)


def member(
    *texts: str, tags: Mapping[str, str] | None = None, hidden: tuple[str, ...] = (), label: str = "a", **top: Any
) -> MemberParts:
    """A member whose versions, in order, have the label as description; the hidden ones have no fragments."""
    kinds: dict[str, list[Fragment]] = {FULL: [], SHORT: [], TIME: []}
    shown = []
    for text in texts:
        version = semver.parse_version(text)
        manifest = {"name": "x", "version": text, "description": f"{label} {text}", "dist": {"shasum": label}}
        shown.append((version.sort, text))
        for kind, body in (
            (FULL, full_fragment(manifest)),
            (SHORT, short_fragment(manifest)),
            (TIME, time_fragment(text, AT)),
        ):
            kinds[kind].append(Fragment(version.sort, version.key, body))
    top = {"tags": tags or {}, "fields": {"description": f'"{label}"', "readme": '"# r"', "own": "1"}, **top}
    value = msgspec.to_builtins(Top(name="x", **top))
    return MemberParts(value, kinds, shown, frozenset(hidden))


def document(*members: MemberParts, form: str = FULL) -> Any:
    return json.loads(splice("x", form, 9, members).joined().replace(BASE, b"http://h"))


def test_versions_of_several_members_are_in_order() -> None:
    members = member("1.0.0", "1.10.0", label="a"), member("1.0.0", "1.2.0", "2.0.0-rc.1", label="b")
    for form in (FULL, SHORT):
        merged = document(*members, form=form)
        assert [(text, each["dist"]["shasum"]) for text, each in merged["versions"].items()] == [
            ("1.0.0", "a"),
            ("1.2.0", "b"),
            ("1.10.0", "a"),
            ("2.0.0-rc.1", "b"),
        ]
        assert list(merged["time"]) == list(merged["versions"])


def test_first_member_decides_about_tags_and_description() -> None:
    first = member("1.0.0", tags={"latest": "1.0.0"}, created="2020", modified="2021")
    second = member("2.0.0", tags={"latest": "2.0.0", "next": "2.0.0"}, label="b", created="2019", modified="2022")
    merged = document(first, second)
    assert merged["dist-tags"] == {"latest": "1.0.0", "next": "2.0.0"}
    assert merged["description"] == "a"
    assert (merged["time"]["created"], merged["time"]["modified"]) == ("2019", "2022")


def test_revision_is_that_of_the_package_that_can_be_written_to() -> None:
    assert document(member("1.0.0"))["_rev"] == revision("x", 9)
    assert document(member("1.0.0", revision="5-a"), member("2.0.0"))["_rev"] == "5-a"


@pytest.mark.parametrize("form", [FULL, SHORT])
@pytest.mark.parametrize(
    ("now", "modified"),
    [
        ("2026-03-05T00:00:00.000Z", "2026-03-04T00:00:00.000Z"),
        ("2026-03-04T23:00:00+02:00", "2026-03-04T23:00:00+02:00"),
    ],
)
def test_view_of_an_upstream_is_modified_by_its_newest_version(form: str, now: str, modified: str) -> None:
    parts = evolve(member("1.0.0", modified=now), at_ms=to_ms(datetime(2026, 3, 4, 22, tzinfo=UTC)))
    assert document(parts, form=form)["time"]["modified"] == modified


def test_unknown_times_are_left_out() -> None:
    assert set(document(member("1.0.0"))["time"]) == {"1.0.0"}
    assert "modified" not in document(member("1.0.0"), form=SHORT)


@pytest.mark.parametrize(
    ("shown", "hidden", "latest"),
    [
        (["1.0.0", "1.1.0"], "1.2.0", "1.1.0"),
        (["1.0.0", "1.1.0-rc.1"], "1.1.0", "1.0.0"),
        (["1.0.0", "3.0.0"], "2.0.0", "1.0.0"),
        (["1.0.0-rc.1", "3.0.0"], "2.0.0", "3.0.0"),
        (["1.0.0-rc.1", "1.0.0-rc.2"], "1.0.0", "1.0.0-rc.2"),
        (["2.0.0-rc.1"], "1.0.0", "2.0.0-rc.1"),
    ],
)
def test_latest_of_a_hidden_version_goes_to_another(shown: list[str], hidden: str, latest: str) -> None:
    parts = member(*shown, tags={"latest": hidden, "next": hidden, "old": shown[0]}, hidden=(hidden,))
    for form in (FULL, SHORT):
        merged = document(parts, form=form)
        assert merged["dist-tags"] == {"latest": latest, "old": shown[0]}
        assert hidden not in merged["time"]
    merged = document(parts)
    assert merged["description"] == f"a {latest}"
    assert (merged["readme"], merged["own"]) == ("", 1)


def test_hiding_another_version_leaves_latest_alone() -> None:
    merged = document(member("1.0.0", tags={"latest": "1.0.0", "next": "2.0.0"}, hidden=("2.0.0",)))
    assert merged["dist-tags"] == {"latest": "1.0.0"}
    assert (merged["description"], merged["readme"]) == ("a", "# r")


def test_version_that_another_member_shows_keeps_its_tag() -> None:
    hiding = member("1.0.0", tags={"latest": "2.0.0"}, hidden=("2.0.0",))
    merged = document(hiding, member("2.0.0", label="b"))
    assert merged["dist-tags"] == {"latest": "2.0.0"}
    assert list(merged["versions"]) == ["1.0.0", "2.0.0"]


def test_package_of_hidden_versions_alone_has_none() -> None:
    merged = document(member(tags={"latest": "1.0.0"}, hidden=("1.0.0",)))
    assert (merged["versions"], merged["dist-tags"], merged["time"]) == ({}, {}, {})


@pytest.mark.parametrize("form", [FULL, SHORT])
def test_tags_of_versions_that_no_member_has_are_left_out(form: str) -> None:
    """Such as those of versions that a registry lists and that nobody can install."""
    lost = member("1.0.0", "1.1.0", tags={"latest": "2.0.0", "next": "3.0.0", "old": "1.0.0"}, revision="5-a")
    assert document(lost, form=form)["dist-tags"] == {"latest": "1.1.0", "old": "1.0.0"}
    elsewhere = document(lost, member("2.0.0", tags={"beta": "2.0.1"}), form=form)
    assert elsewhere["dist-tags"] == {"latest": "2.0.0", "old": "1.0.0"}
    assert document(lost)["_rev"] == "5-a"


@pytest.mark.parametrize("form", [FULL, SHORT])
def test_tags_of_a_hosted_member_stay_beside_hidden_versions_of_an_upstream(form: str) -> None:
    hosted = evolve(member("1.0.0", tags={"latest": "1.0.0"}), versions=())  # as those are read that no rule is about
    upstream = member("2.0.0", tags={"latest": "3.0.0", "next": "2.0.0"}, hidden=("3.0.0",))
    assert document(hosted, upstream, form=form)["dist-tags"] == {"latest": "1.0.0", "next": "2.0.0"}


def test_latest_may_go_to_a_version_with_build_metadata() -> None:
    merged = document(member("1.0.0+b", tags={"latest": "2.0.0"}, hidden=("2.0.0",)))
    assert (merged["dist-tags"], merged["description"]) == ({"latest": "1.0.0+b"}, "a 1.0.0+b")


TAGS = {"latest": "1.0.0", "next": "2.0.0-rc.1+b"}
VERSIONS = ("1.0.0", "1.0.1", "2.0.0-rc.1+b", "3.0.0", "3.0.0+b")
FRAGMENTS = [full_fragment({"name": "x", "version": text, "dist": {}}) for text in VERSIONS]
SPLICED = splice_full(Top(name="x", tags=TAGS, fields={"readme": '"# x"'}), [b'"1.0.0":"t"'], FRAGMENTS)


@pytest.mark.parametrize(
    ("selector", "index"),
    [
        ("1.0.0", 0),
        ("v1.0.0", 0),
        ("=1.0.1", 1),
        ("latest", 0),
        ("next", 2),
        ("2.0.0-rc.1", 2),
        ("2.0.0-rc.1+b", 2),
        ("2.0.0-rc.1+other", 2),
        ("3.0.0", 3),
        ("v3.0.0+b", 4),
        ("3.0.0+other", 3),
    ],
)
def test_version_is_found_by_number_and_tag(selector: str, index: int) -> None:
    assert find_fragment(SPLICED, selector) == FRAGMENTS[index]


@pytest.mark.parametrize("selector", ["1.0", "1.0.2", "2.0.0", "2.0.0-rc", "dist", "^1.0.0", ""])
def test_other_selectors_find_nothing(selector: str) -> None:
    assert find_fragment(SPLICED, selector) is None


def test_tags_are_read_from_each_form() -> None:
    assert read_tags(SPLICED) == TAGS
    assert read_tags(splice_short(Top(name="x", tags=TAGS), [], FRAGMENTS)) == TAGS


@pytest.mark.parametrize("form", [FULL, SHORT])
def test_what_rules_hide_is_named_where_npm_alone_looks_for_it(form: str) -> None:
    parts = member("1.0.0", tags={"latest": "1.0.0", "next": "1.0.1"}, hidden=("1.0.1",))
    plain = document(parts, form=form)
    assert "policyRestrictions" not in plain
    named = document(evolve(parts, withheld=Withheld(["1.0.1"], "x 1.0.1 is blocked")), form=form)
    assert named.pop("policyRestrictions") == {
        "message": "x 1.0.1 is blocked",
        "versions": {"1.0.1": {"name": "x", "version": "1.0.1"}},
    }
    assert named == plain

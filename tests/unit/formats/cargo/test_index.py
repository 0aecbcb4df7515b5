"""Lines of the index, and documents that are joined from them."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pytest

from pkgrepo.formats.cargo.index import INDEX, latest, render_line, splice, with_yank
from pkgrepo.model import Fragment, Version, VersionState
from pkgrepo.proxy.format import MemberParts
from pkgrepo.repositories.semver import parse_version

AT = datetime(2026, 11, 28, 1, 2, 3, 999_999, UTC)


def version(text: str, state: VersionState = VersionState.LIVE) -> Version:
    parsed = parse_version(text)
    return Version(
        id=1,
        package_id=1,
        key=parsed.key,
        text=text,
        sort=parsed.sort,
        state=state,
        reason="",
        meta={},
        published_at=AT,
        publisher="",
    )


def member(*lines: tuple[str, str, bool], number: int = 0) -> MemberParts:
    """A member with versions: their texts, their checksums and whether they are yanked."""
    found = [
        Fragment(
            (number + at).to_bytes(8, "big"),
            parse_version(text).key,
            json.dumps({"vers": text, "cksum": cksum, "yanked": yanked}).encode(),
        )
        for at, (text, cksum, yanked) in enumerate(lines)
    ]
    return MemberParts({}, {INDEX: found}, sorted((parse_version(text).sort, text) for text, *_ in lines))


def test_a_line_says_what_the_registry_knows_behind_what_the_publisher_sent():
    line = {"name": "demo", "vers": "0.1.0", "deps": [], "features": {}}
    rendered = render_line(line, hashlib.sha256(b"CRATE").hexdigest(), version("0.1.0"))
    assert rendered == (
        b'{"name":"demo","vers":"0.1.0","deps":[],"features":{},'
        b'"cksum":"2efe04cf289c4eacbe8fdd5e12768825fd7addf8e438b2383ea489fbb9a2c028","yanked":false,'
        b'"pubtime":"2026-11-28T01:02:03Z"}'
    )


def test_a_yank_changes_one_field_of_the_line():
    line = {"name": "demo", "vers": "0.1.0", "features": {"yanked": ["false"]}}
    live, yanked = (
        render_line(line, "00", version("0.1.0", state)) for state in (VersionState.LIVE, VersionState.YANKED)
    )
    assert with_yank(live, yanked=True) == yanked
    assert with_yank(yanked, yanked=False) == live == with_yank(live, yanked=False)
    assert {**json.loads(yanked), "yanked": False} == json.loads(live)


def test_of_one_version_the_line_of_the_first_member_counts():
    first = member(("1.0.0+a", "aa", False))
    second = member(("1.0.0", "bb", False), ("1.1.0", "cc", False), number=4)
    lines = splice("demo", INDEX, 0, [first, second]).joined().splitlines()
    assert [json.loads(each)["cksum"] for each in lines] == ["aa", "cc"]
    assert splice("demo", INDEX, 0, [first]).joined().endswith(b"}\n")
    assert splice("demo", INDEX, 0, [member()]).joined() == b""


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([("1.0.0", "", False), ("1.1.0-rc.1", "", False)], "1.0.0"),
        ([("1.0.0", "", False), ("1.1.0", "", True)], "1.0.0"),
        ([("1.0.0-a", "", False), ("1.0.0-b", "", False)], "1.0.0-b"),
    ],
)
def test_the_latest_is_the_highest_release_that_is_not_yanked(lines, expected):
    found = latest("demo", [member(*lines)])
    assert found is not None
    assert found.version == expected


def test_a_crate_whose_versions_are_yanked_has_no_latest():
    assert latest("demo", [member(("1.0.0", "", True))]) is None

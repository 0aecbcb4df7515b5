"""Merging what several repositories have of a package."""

from __future__ import annotations

from pkgrepo.model import Fragment
from pkgrepo.proxy.format import MemberParts, merge_fragments, merge_versions


def parts(*versions: str, body: str = "") -> MemberParts:
    return MemberParts(
        top={},
        fragments={"full": [Fragment(each.encode(), each, (body + each).encode()) for each in versions]},
        versions=[(each.encode(), each) for each in versions],
    )


def test_one_member_is_taken_as_it_is() -> None:
    assert merge_fragments([parts("1", "2")], "full") == [b"1", b"2"]
    assert merge_versions([parts("1", "2")]) == ["1", "2"]


def test_versions_of_several_members_are_merged_in_order_and_the_first_member_wins() -> None:
    members = [parts("2", body="a"), parts("1", "2", "3", body="b")]
    assert merge_fragments(members, "full") == [b"b1", b"a2", b"b3"]
    assert merge_versions(members) == ["1", "2", "3"]


def test_a_member_without_fragments_leaves_those_of_the_others() -> None:
    assert merge_fragments([parts(), parts("1")], "full") == [b"1"]
    assert merge_versions([parts(), parts("1")]) == ["1"]

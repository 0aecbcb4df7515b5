"""What is different between two files, and how that is said."""

from __future__ import annotations

import pytest
from attrs import evolve

from pkgrepo.archives.explained import MANY, NO_SOURCE, Explained
from pkgrepo.archives.inside import DIFFERENCES, Shape
from pkgrepo.archives.minified import GROWTH, LEAST_GROWTH
from pkgrepo.repositories.policy.differences import MOST_ASKED, YOUNG_MS, Compared, Seen, compare, with_ages

EVERY = frozenset(DIFFERENCES)


def seen(*words: str, told: Shape | None = None, explained: Explained = NO_SOURCE, **shape: object) -> Seen:
    of_bytes = Shape(**{"unreadable": (), "licences": (), **shape})  # type: ignore[arg-type]
    return Seen(frozenset(words), of_bytes, told or Shape(), explained)


@pytest.mark.parametrize(
    ("before", "after", "different"),
    [
        (seen(), seen(), set()),
        (seen("pth"), seen("pth"), set()),
        (seen("pth"), seen(), set()),
        (seen(), seen("pth", "native_binary"), {"pth"}),
        (seen(dependencies=("a", "b")), seen(dependencies=("b",)), set()),
        (seen(dependencies=("a",)), seen(dependencies=("a", "b"), direct=("b",)), {"dependency", "git_dependency"}),
        (seen(told=Shape(dependencies=("a",))), seen(dependencies=("a",)), set()),
        (seen(), seen(sources=("github.com/a/b",)), set()),
        (seen(sources=("github.com/a/b",)), seen(), set()),
        (
            seen(sources=("github.com/a/b",)),
            seen(sources=("github.com/a/b",), told=Shape(sources=("x/y/z",))),
            {"source"},
        ),
        (seen(unpacked=1000), seen(unpacked=1000 + LEAST_GROWTH), set()),
        (seen(unpacked=1000), seen(unpacked=1001 + LEAST_GROWTH), {"size"}),
        (seen(unpacked=10**6), seen(unpacked=GROWTH * 10**6), set()),
        (seen(unpacked=10**6), seen(unpacked=GROWTH * 10**6 + 1), {"size"}),
        (seen(told=Shape(publisher="a", maintainers=("b",))), seen(told=Shape(publisher="b")), set()),
        (seen(told=Shape(publisher="a", maintainers=("b",))), seen(told=Shape(publisher="c")), {"publisher"}),
        (seen(unreadable=(("", "a.js", 3000),)), seen(unreadable=(("", "b.js", 4000),)), set()),
        (seen(), seen(unreadable=(("", "a.js", 3000),)), {"obfuscated"}),
        (seen(licences=("MIT",)), seen(licences=("Apache-2.0", "MIT")), {"licence"}),
        (seen(licences=("MIT",)), seen(licences=("mit license",)), set()),
        (seen(), seen(licences=("BUSL-1.1",)), set()),
        (seen(explained=Explained("v1", ("a.js",))), seen(explained=Explained("v2", ("a.js",))), set()),
        (seen(explained=Explained("v1", ("a.js",))), seen(explained=Explained("v2", ("b.js",))), {"unexplained"}),
        (seen(explained=Explained("v1")), seen(explained=NO_SOURCE), {"unexplained"}),
        (seen(explained=NO_SOURCE), seen(explained=Explained("v2", ("a.js",))), set()),
        (seen(explained=NO_SOURCE), seen(explained=NO_SOURCE), set()),
        (seen(explained=Explained("v1", asked="a")), seen(explained=Explained("v2", asked="b")), {"unexplained"}),
        (seen(explained=Explained("v1")), seen(explained=Explained("v2", built=(MANY,))), {"unexplained"}),
        (seen(explained=Explained("v1", built=(MANY,))), seen(explained=Explained("v2", built=(MANY,))), set()),
    ],
)
def test_what_is_different(before: Seen, after: Seen, different: set[str]) -> None:
    assert {*compare(before, after, "1").words} == different


def test_what_is_not_known_of_one_of_both_is_unknown() -> None:
    whole = seen(told=Shape(publisher="a"))
    assert compare(whole, whole, "1").unknown == set()
    for before, after in ((Seen(), whole), (whole, Seen())):
        assert compare(before, after, "1").unknown == EVERY
    assert compare(whole, seen(), "1").unknown == {"publisher"}
    earlier = evolve(whole, shape=Shape(unpacked=10))  # an earlier release did not look for all
    for before, after in ((earlier, whole), (whole, earlier), (earlier, earlier)):
        assert compare(before, after, "1").unknown == {"obfuscated", "licence"}
        assert not compare(before, after, "1").words
    locked = Seen(None, None, Shape(publisher="b"))
    assert compare(whole, locked, "1").unknown == EVERY - {"publisher"}
    assert compare(whole, locked, "1").words.keys() == {"publisher"}


def test_it_is_said_in_one_line_whatever_packages_are_called() -> None:
    code = Compared({"obfuscated": ("1.0.0", ["dist/a.js", "b.js"])}).sentence({"obfuscated"})
    assert code == "new obfuscated or minified code in dist/a.js b.js since 1.0.0"
    names = ("a", "b\r\nSet-Cookie: x", *"cdefgh")
    found = Compared({"pth": ("1.0.0", ()), "dependency": ("1.0.0", names)})
    said = found.sentence({"pth", "dependency", "size"})
    assert said == "first pth, new dependencies a 'b\\r\\nSet-Cookie: x' c d e and 3 more since 1.0.0"
    assert found.sentence({"size"}) == ""
    assert len(Compared({"dependency": ("9" * 5000, ["x" * 256] * 2000)}).sentence({"dependency"})) < 1000


def test_what_is_different_from_any_of_several_is_said_with_the_first_of_them() -> None:
    base, near = (Compared(dict.fromkeys(words, (version, ()))) for version, words in (("1", ["pth"]), ("2", [*EVERY])))
    found = Compared.joined([base, evolve(near, unknown=frozenset({"size"}))])
    assert found.sentence({"pth", "executable"}) == "first pth since 1, first executable since 2"
    assert (found.before({"pth"}), found.before({"executable"}), found.unknown) == ("1", "2", {"size"})


NOW = 10 * YOUNG_MS
FIRST = {"old": 1, "edge": NOW - YOUNG_MS, "young": NOW - YOUNG_MS + 1, "later": NOW + 1, "undated": None}


@pytest.mark.parametrize(
    ("names", "young", "unknown", "asking"),
    [
        ((), (), False, ()),
        (("old", "edge"), (), False, ()),
        (("old", "young"), ("young",), False, ()),
        (("later",), ("later",), False, ()),
        (("undated", "old"), (), True, ()),
        (("undated", "young", "unasked"), ("young",), False, ()),
        (("unasked", "old", "other"), (), True, ("other", "unasked")),
        (("direct", "alias", "old"), (), False, ()),
        (tuple("abcde"), (), True, tuple("abcde")),
        (tuple("abcdef"), tuple("abcdef"), False, ()),
    ],
)
def test_a_new_dependency_is_young_by_its_first_publication(
    names: tuple[str, ...], young: tuple[str, ...], unknown: bool, asking: tuple[str, ...]
) -> None:
    assert MOST_ASKED == 5
    after = seen(dependencies=names, direct={*names} & {"direct"}, aliases={*names} & {"alias"})
    found = compare(seen(), after, "1")
    aged = with_ages(found, after, NOW, FIRST.__getitem__)
    assert tuple(aged.words.get("young_dependency", ("", ()))[1]) == young
    assert ("young_dependency" in aged.unknown, aged.asking, aged.is_open) == (unknown, asking, bool(asking))
    assert aged.words.keys() - {"young_dependency"} == found.words.keys()
    joined = Compared.joined([Compared(), aged])
    assert (joined.words, joined.unknown, joined.asking) == (aged.words, aged.unknown, aged.asking)


@pytest.mark.parametrize("elsewhere", ["direct", "aliases"])
def test_a_name_counts_where_the_file_or_the_document_takes_it_from_the_registry(elsewhere: str) -> None:
    told = Shape(**{"dependencies": ("young",), elsewhere: ("young",)})
    for dependencies, found in (((), False), (("young",), True)):
        after = seen(told=told, dependencies=dependencies)
        aged = with_ages(compare(seen(), after, "1"), after, NOW, FIRST.__getitem__)
        assert ("young_dependency" in aged.words) == found


def test_of_what_is_not_read_no_age_is_known() -> None:
    assert "young_dependency" in with_ages(compare(Seen(), Seen(), "1"), Seen(), NOW, FIRST.__getitem__).unknown

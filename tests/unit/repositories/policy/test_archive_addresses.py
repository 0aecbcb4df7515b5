"""Where archives of sources are, as an operator says it."""

from __future__ import annotations

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.repositories.policy.archive_addresses import NO_ARCHIVES, ArchiveAddresses, with_tag

TEMPLATE = "https://archives.example.org/{owner}/{repo}/{tag}.tar.gz"


def test_the_first_repository_of_a_known_host_is_asked_for() -> None:
    known = ArchiveAddresses.checked({"Git.example.com": TEMPLATE})
    address = known.of(["other.example.org/a/b", "git.example.com/acme/de mo"])
    assert address == "https://archives.example.org/acme/de%20mo/{tag}.tar.gz"
    assert (
        with_tag(address, "@acme/demo@1.0+a") == "https://archives.example.org/acme/de%20mo/@acme/demo@1.0%2Ba.tar.gz"
    )
    assert known.of(["other.example.org/a/b"]) == known.of([]) == NO_ARCHIVES.of(["git.example.com/a/b"]) == ""


@pytest.mark.parametrize(
    "source", ["git.example.com/../b", "git.example.com/a/..", "git.example.com/a", "git.example.com/a/b/c"]
)
def test_what_is_no_repository_has_no_address(source: str) -> None:
    assert not ArchiveAddresses.checked({"git.example.com": TEMPLATE}).of([source])


@pytest.mark.parametrize("tag", ["..", "a/../b", "/a", "a//b", ""])
def test_a_tag_changes_its_place_alone(tag: str) -> None:
    assert not with_tag(TEMPLATE, tag)


@pytest.mark.parametrize(("tag", "asked"), [("20271224", False), ("deadBEEF", False), ("2.0", True), ("v2027", True)])
def test_what_may_name_a_commit_is_asked_for_as_a_tag_alone(tag: str, asked: bool) -> None:
    """Hosts find commits by the beginning of their names, also those of forks."""
    tags = "https://git.example.com/a/b/archive/refs/tags/{tag}.tar.gz"
    assert with_tag(tags, tag) == f"https://git.example.com/a/b/archive/refs/tags/{tag}.tar.gz"
    assert bool(with_tag(tags.replace("refs/tags/", ""), tag)) == asked


def test_a_tag_that_makes_no_url_has_no_archive() -> None:
    assert not with_tag("https://git.example.com/a/b/{tag}", "x" * 9000)


def test_braces_in_names_are_no_places() -> None:
    address = ArchiveAddresses.checked({"git.example.com": TEMPLATE}).of(["git.example.com/{repo}/{tag}"])
    assert with_tag(address, "v1") == "https://archives.example.org/%7Brepo%7D/%7Btag%7D/v1.tar.gz"


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("https://example.org/{owner}/{tag}", "not all of"),
        ("ftp://example.org/{owner}/{repo}/{tag}", "cannot be used"),
        ("https://example.org/{owner}/{repo}/{tag}/{name}", "other braces"),
        ("https://user:word@example.org/{owner}/{repo}/{tag}", "cannot be used"),
    ],
)
def test_addresses_that_cannot_be_used_are_refused(template: str, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        ArchiveAddresses.checked({"git.example.com": template})

"""The compact index after each change: lines of gems, the list of changes, and how both fit together."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.gemspec import DEVELOPMENT, RUNTIME, Dependency
from pkgrepo.formats.rubygems.index import gem_lists, indexing
from pkgrepo.formats.rubygems.index.gem_lists import VersionsLists
from pkgrepo.formats.rubygems.index.info import info_line, info_md5, without_time

from .conftest import Gems, make_spec

EMPTY_INFO = "6105347ebb9825ac754615ca55ff3b0c"
CHECKSUM = "390d21aec2ebe5affcf986f6ad353376188d220e26ab0e2e810edc5efc9e6059"


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def test_a_line_has_what_clients_resolve_with() -> None:
    spec = make_spec(
        "beta-gem",
        "0.1.0",
        dependencies=(
            Dependency("zeta", RUNTIME),
            Dependency("alpha", RUNTIME, ((">=", "1.0"), ("<", "3"))),
            Dependency("rspec", DEVELOPMENT, ((">=", "3"),)),
        ),
        required_ruby=((">=", "2.5"), ("<", "4")),
        required_rubygems=((">=", "3.0"),),
    )
    line = info_line(spec, CHECKSUM, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert line == (
        b"0.1.0 alpha:< 3&>= 1.0,zeta:>= 0|checksum:%b,ruby:< 4&>= 2.5,rubygems:>= 3.0,created_at:2026-01-02T03:04:05Z"
        % CHECKSUM.encode()
    )


def test_the_validator_is_that_of_the_body() -> None:
    spec = make_spec(
        "beta-gem",
        "0.1.0",
        dependencies=(Dependency("alpha", RUNTIME, ((">=", "1.0"), ("<", "3"))),),
        required_ruby=((">=", "2.5"),),
    )
    line = without_time(info_line(spec, CHECKSUM, datetime(2026, 1, 2, tzinfo=UTC)))
    assert info_md5([line]) == "2c51a60d217b444307ab069ac5e35872"
    assert info_md5([]) == EMPTY_INFO


async def test_each_push_appends_a_line_with_the_validator_of_the_info(gems: Gems) -> None:
    empty = await gems.versions()
    assert empty == b"created_at: %b\n---\n" % gems.repository.created_at.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    gems.push(make_spec("a", "1.0"))
    first = await gems.versions()
    assert first == empty + f"a 1.0 {md5(gems.info('a'))}\n".encode()
    gems.push(make_spec("a", "1.0", "java"))
    second = await gems.versions()
    assert second == first + f"a 1.0-java {md5(gems.info('a'))}\n".encode()
    assert gems.info("a").count(b"\n") == 3


async def test_a_yank_appends_a_line_and_a_restore_another(gems: Gems) -> None:
    gems.push(make_spec("a", "1.0"))
    before, whole = gems.info("a"), await gems.versions()
    gems.yank("a", "1.0")
    assert gems.info("a") == b"---\n"
    assert await gems.versions() == whole + f"a -1.0 {EMPTY_INFO}\n".encode()
    gems.restore("a", "1.0")
    assert gems.info("a") == before
    assert (await gems.versions()).endswith(f"a 1.0 {md5(before)}\n".encode())


async def test_a_gem_that_is_deleted_leaves_a_line_too(gems: Gems) -> None:
    gems.push(make_spec("a", "1.0"))
    gems.delete("a", "1.0")
    assert (await gems.versions()).endswith(f"a -1.0 {EMPTY_INFO}\n".encode())
    with pytest.raises(NotFound):
        gems.info("a")


async def test_versions_are_in_the_order_of_their_publication(gems: Gems) -> None:
    for number in ("2.0", "1.0", "10.0"):
        gems.push(make_spec("a", number))
    assert [line.split(b" ")[0] for line in gems.info("a").splitlines()[1:]] == [b"2.0", b"1.0", b"10.0"]


async def test_other_processes_append_the_same_bytes(gems: Gems, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gem_lists, "PAGE", 2)
    other = VersionsLists()
    for n in range(7):
        gems.push(make_spec(f"g{n}"))
        if n % 3 == 0:
            whole = await gems.versions()
            found = await other.get(gems.catalog, gems.repository)
            assert found.file.read() == whole


async def test_an_answer_that_is_under_way_keeps_its_bytes(gems: Gems) -> None:
    gems.push(make_spec("a"))
    old = await gems.caches.versions.get(gems.catalog, gems.repository)
    before = old.file.read()
    gems.push(make_spec("b"))
    assert len(await gems.versions()) > len(before)
    assert old.file.read() == before


async def test_a_list_with_many_removals_is_written_anew(gems: Gems, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "FEWEST_REMOVALS", 3)
    for name in ("c", "b", "a"):
        gems.push(make_spec(name, "1.0"))
        gems.push(make_spec(name, "1.1"))
    before = await gems.versions()
    for version in ("1.0", "1.1"):
        gems.yank("c", version)
    gems.yank("b", "1.1")
    grown = await gems.versions()
    assert grown.startswith(before)
    gems.restore("b", "1.1")
    gems.yank("b", "1.1")
    head, mark, *lines = (await gems.versions()).decode().splitlines()
    assert (mark, head > before.decode().splitlines()[0]) == ("---", True)
    assert lines == [f"a 1.0,1.1 {md5(gems.info('a'))}", f"b 1.0 {md5(gems.info('b'))}"]
    gems.push(make_spec("d"))
    assert (await gems.versions()).decode().splitlines()[2:] == [*lines, f"d 1.0 {md5(gems.info('d'))}"]

"""The compact index, the lists of all gems, and their responses."""

from __future__ import annotations

import gzip
import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest

from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems import legacy
from pkgrepo.formats.rubygems.gemspec import DEVELOPMENT, RUNTIME, Dependency
from pkgrepo.formats.rubygems.index import indexing
from pkgrepo.formats.rubygems.index.gem_lists import NAMES, VersionsLists
from pkgrepo.formats.rubygems.index.info import info_line, info_md5, without_time
from pkgrepo.formats.rubygems.index.requests import text_document_response
from pkgrepo.formats.rubygems.legacy import LATEST, PRERELEASES, SPECS, join_rows, list_row
from pkgrepo.http.responses import Content
from pkgrepo.model import Document
from tests.support.repositories import started_pools
from tests.unit.formats.rubygems.index.conftest import Gems, make_spec

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


async def test_other_processes_append_the_same_bytes(gems: Gems) -> None:
    other = VersionsLists(page=2)
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


async def test_empty_lists(gems: Gems) -> None:
    assert await gems.listed(NAMES) == b"---\n\n"
    for form in (SPECS, LATEST, PRERELEASES):
        assert await gems.listed(form) == b"\x04\x08[\x00"


async def test_lists_show_live_versions_after_each_change(gems: Gems) -> None:
    gems.push(make_spec("b", "1.0"))
    gems.push(make_spec("b", "1.10"))
    gems.push(make_spec("b", "1.9"))
    gems.push(make_spec("b", "1.9", "java"))
    gems.push(make_spec("b", "2.0.pre"))
    gems.push(make_spec("a", "0.1.a"))
    assert await gems.listed(NAMES) == b"---\na\nb\n"
    releases = [("b", "1.0", "ruby"), ("b", "1.9", "java"), ("b", "1.9", "ruby"), ("b", "1.10", "ruby")]
    assert await gems.listed(SPECS) == join_rows([list_row(*row) for row in releases])
    assert sorted(read(await gems.listed(LATEST))) == [("b", "1.10", "ruby"), ("b", "1.9", "java")]
    assert read(await gems.listed(PRERELEASES)) == [("a", "0.1.a", "ruby"), ("b", "2.0.pre", "ruby")]
    gems.yank("a", "0.1.a")
    gems.yank("b", "1.10")
    assert await gems.listed(NAMES) == b"---\nb\n"
    assert sorted(read(await gems.listed(LATEST))) == [("b", "1.9", "java"), ("b", "1.9", "ruby")]
    assert read(await gems.listed(PRERELEASES)) == [("b", "2.0.pre", "ruby")]
    gems.delete("b", "2.0.pre")
    assert await gems.listed(PRERELEASES) == b"\x04\x08[\x00"


def read(data: bytes) -> list[tuple[str, str, str]]:
    """The rows of a list, found by writing each of those that the tests push."""
    names = [
        (name, number, platform)
        for name in "ab"
        for number in ("0.1.a", "1.0", "1.9", "1.10", "2.0.pre")
        for platform in ("java", "ruby")
    ]
    found = []
    for row in names:
        written = list_row(*row)
        if written in data or legacy.first_row(written) in data:
            found.append(row)
    assert len(data) == len(join_rows([list_row(*row) for row in found]))
    return found


TEXT = b"---\n" + b"1.0.0 |checksum:0\n" * 20_000


class Sink:
    """A consumer that takes everything."""

    def __init__(self) -> None:
        self.data = b""

    def registerProducer(self, producer: object, streaming: bool) -> None:
        """Nothing is ever paused."""

    def unregisterProducer(self) -> None:
        """Nothing is kept."""

    def write(self, data: bytes) -> None:
        """Take a piece."""
        self.data += data


class Asking:
    """A request with one field."""

    def __init__(self, coding: bytes | None) -> None:
        self._coding = coding

    def header(self, _name: bytes) -> bytes | None:
        return self._coding


class Public:
    """A repository that everybody reads."""

    is_private = False


def answer(document: Document, coding: bytes | None, cpu: Any) -> Any:
    request: Any = Asking(coding)
    repository: Any = Public()
    return text_document_response(request, document, repository=repository, cpu=cpu)


@pytest.fixture
def large() -> Document:
    """A document that is kept in its compressed form only."""
    digests = {"sha256": "00" * 32, "md5": "11" * 16}
    return Document("text/plain", b"", '"e"', 1, gzip=gzip.compress(TEXT), digests=digests, size=len(TEXT))


async def test_a_large_document_is_unpacked_for_clients_without_gzip(large: Document) -> None:
    pools = started_pools()
    try:
        found = answer(large, None, pools.cpu)
        assert (found.size, found.ranges) == (len(TEXT), True)
        assert isinstance(found.body, Content)
        deliver: Any = found.body.deliver
        whole, part = Sink(), Sink()
        await deliver(whole, 0, len(TEXT))
        await deliver(part, 1000, 200_000)
    finally:
        await pools.stop()
    assert whole.data == TEXT
    assert part.data == TEXT[1000:200_000]


@pytest.mark.parametrize("coding", [b"gzip", b"gzip, deflate"])
def test_a_large_document_is_sent_compressed_to_clients_with_gzip(large: Document, coding: bytes) -> None:
    found = answer(large, coding, None)
    assert gzip.decompress(found.body) == TEXT
    assert (b"Content-Encoding", b"gzip") in found.headers

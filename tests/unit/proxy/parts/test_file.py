"""Parts files: what is written is read again, in order, and damage is noticed."""

from __future__ import annotations

import io
import os
import random
import tempfile
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.proxy.parts import layout
from pkgrepo.proxy.parts.file import PartsFile, write_parts
from pkgrepo.proxy.parts.layout import GROUP_ENTRIES, HEADER, LARGEST_BLOCK, TRAILER, PartsDamaged
from pkgrepo.proxy.parts.values import Entry, FileSource, Normalised

sources = st.builds(
    FileSource,
    path=st.text(max_size=12),
    url=st.text(max_size=12),
    size=st.none() | st.integers(0, 2**63 - 1),
    digests=st.dictionaries(st.sampled_from(["sha1", "sha512"]), st.text("0123456789abcdef", max_size=8)),
    media_type=st.text(max_size=5),
    meta=st.dictionaries(st.text(max_size=3), st.integers(-5, 5) | st.text(max_size=3) | st.booleans()),
)
entries = st.builds(
    Entry,
    sort=st.binary(max_size=3),
    key=st.text(max_size=3),
    version=st.text(max_size=3),
    published_ms=st.none() | st.integers(0, 2**50),
    first_seen=st.booleans(),
    fragments=st.dictionaries(st.sampled_from(["full", "short"]), st.binary(max_size=20)),
    files=st.lists(sources, max_size=2),
)


def entry(number: int, *, fragment: bytes = b"{}", path: str | None = None) -> Entry:
    name = f"{number}.0"
    file = FileSource(path or f"p-{name}.tgz", f"https://upstream.example/p-{name}.tgz", None, {}, "", {})
    return Entry(b"%08d" % number, name, name, number, False, {"full": fragment, "short": b"%d" % number}, [file])


def written(given: Iterable[Entry], top: dict[str, object] | None = None) -> bytes:
    out = io.BytesIO()
    write_parts(out, Normalised(top or {}, iter(given)))
    return out.getvalue()


def descriptor(data: bytes) -> int:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return os.dup(file.fileno())


@given(st.lists(entries, max_size=40), st.dictionaries(st.text(), st.none() | st.lists(st.floats(-1, 1))))
def test_what_is_written_is_read_in_order(given: list[Entry], top: dict[str, object]) -> None:
    expected = {(each.sort, each.key): each for each in given}
    in_order = [expected[place] for place in sorted(expected)]
    with PartsFile(written(given, top)) as parts:
        assert parts.top == top
        assert parts.count == len(expected)
        assert list(parts.entries()) == in_order
        for kind in ("full", "short"):
            assert parts.fragments(kind) == [
                (each.sort, each.key, each.fragments[kind]) for each in in_order if kind in each.fragments
            ]
        for place, each in expected.items():
            assert parts.find(*place) == each
        for path in {file.path for each in in_order for file in each.files}:
            found, source = parts.find_path(path) or pytest.fail("a path is missing")
            assert source in found.files
            assert source.path == path
            assert found in in_order


@pytest.mark.parametrize("count", [0, 1, GROUP_ENTRIES, GROUP_ENTRIES + 1, 1000])
def test_many_groups_are_read_from_a_descriptor(count: int) -> None:
    given = [entry(number) for number in range(count)]
    random.Random(count).shuffle(given)
    with PartsFile(descriptor(written(given))) as parts:
        assert parts.count == count
        in_order = sorted(given, key=lambda each: each.sort)
        assert list(parts.entries()) == in_order
        for each in in_order:
            assert parts.find(each.sort, each.key) == each
            assert parts.find_path(each.files[0].path) == (each, each.files[0])
        assert parts.find(b"", "") is None
        assert parts.find(b"00000000", "absent") is None
        assert parts.find(b"99999999", "") is None
        assert parts.find_path("absent") is None


def test_large_fragments_end_a_group() -> None:
    large = random.Random(1).randbytes(layout.GROUP_SIZE)
    given = [entry(number, fragment=large) for number in range(3)]
    with PartsFile(written(given)) as parts:
        assert list(parts.entries()) == given
        assert len(parts._table.groups) == 3


def test_the_last_of_two_entries_at_one_place_is_kept() -> None:
    with PartsFile(written([entry(1), entry(2), entry(1, fragment=b"newer")])) as parts:
        assert parts.fragments("full") == [(b"00000001", "1.0", b"newer"), (b"00000002", "2.0", b"{}")]


def test_fragments_and_entries_can_be_chosen() -> None:
    given = [entry(number) for number in range(300)]
    with PartsFile(written(given)) as parts:
        assert [key for _, key, _ in parts.fragments("short", lambda _, key: key in {"3.0", "250.0"})] == [
            "3.0",
            "250.0",
        ]
        assert parts.fragments("other") == []
        assert all(each.fragments == {} for each in parts.entries(()))
        assert [each.fragments for each in parts.entries(["short"])] == [
            {"short": each.fragments["short"]} for each in given
        ]


def test_equal_hashes_of_paths_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkgrepo.proxy.parts.file.hash_path", lambda _: 7)
    monkeypatch.setattr("pkgrepo.proxy.parts.file.hash_path", lambda _: 7)
    given = [entry(number) for number in range(2 * GROUP_ENTRIES)]
    with PartsFile(written(given)) as parts:
        for number in (0, 100, 200):
            assert parts.find_path(f"p-{number}.0.tgz") == (given[number], given[number].files[0])
        assert parts.find_path("absent") is None


def test_the_descriptor_is_closed(tmp_path: os.PathLike[str]) -> None:
    fd = descriptor(written([entry(1)]))
    with PartsFile(fd):
        os.fstat(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    damaged = descriptor(b"something else")
    with pytest.raises(PartsDamaged):
        PartsFile(damaged)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(damaged)


def read_all(data: bytes) -> object:
    with PartsFile(data) as parts:
        return parts.count, parts.top, list(parts.entries()), parts.fragments("full"), parts.find_path("p-0.0.tgz")


def test_every_truncation_is_noticed() -> None:
    data = written([entry(number) for number in range(5)])
    for length in range(len(data)):
        with pytest.raises(PartsDamaged):
            read_all(data[:length])
        with pytest.raises(PartsDamaged):
            read_all(data[length + 1 :])


def test_every_changed_byte_is_noticed() -> None:
    data = written([entry(number) for number in range(5)])
    for place in range(len(data)):
        for change in (1, 0x80, 0xFF):
            changed = bytearray(data)
            changed[place] ^= change
            with pytest.raises(PartsDamaged):
                read_all(bytes(changed))


def test_another_version_is_refused() -> None:
    data = written([entry(1)])
    assert data.startswith(HEADER)
    with pytest.raises(PartsDamaged):
        PartsFile(data.replace(b"parts 1", b"parts 2", 1))


def test_lengths_are_not_trusted() -> None:
    data = written([entry(1)])
    offset, size, length, checksum = TRAILER.unpack(data[-TRAILER.size :])
    for trailer in (
        (2**64 - 1, size, length, checksum),
        (offset, 2**32 - 1, length, checksum),
        (offset, size, 2**32 - 1, checksum),
        (offset, size, length + 1, checksum),
    ):
        with pytest.raises(PartsDamaged):
            PartsFile(data[: -TRAILER.size] + TRAILER.pack(*trailer))


def test_an_entry_of_any_size_is_refused() -> None:
    with pytest.raises(Invalid, match=f"more than {LARGEST_BLOCK} bytes"):
        written([entry(1, fragment=bytes(LARGEST_BLOCK))])


def test_a_section_has_the_entries_that_begin_with_it() -> None:
    names = [b"a", b"ab", b"b", b"many", b"z"]
    counts = {name: 3 * GROUP_ENTRIES if name == b"many" else 2 for name in names}
    made = []
    for name in names:
        for number in range(counts[name]):
            path = f"{name.decode()}-{number}"
            source = FileSource(path, path, None, {}, "", {})
            made.append(Entry(name + b"\0" + bytes([number // 256, number % 256]), path, path, 0, False, {}, [source]))
    out = io.BytesIO()
    write_parts(out, Normalised({}, iter(made), ordered=True))
    with PartsFile(out.getvalue()) as parts:
        assert parts.count == len(made)
        for name in names:
            section = name + b"\0"
            assert [each.key for each in parts.entries((), section)] == [
                f"{name.decode()}-{number}" for number in range(counts[name])
            ]
            assert parts.has_section(section)
            last = f"{name.decode()}-{counts[name] - 1}"
            found = parts.find_path(last, section)
            assert found is not None
            assert found[0].key == last
            assert parts.find_path("b-0", section) is None or name == b"b"
        for absent in (b"", b"0", b"aa", b"c", b"zz"):
            assert not parts.has_section(absent + b"\0")

"""The Marshal reader, against what Ruby and our writer wrote, and against hostile bytes."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.gemspec import DEVELOPMENT, RUNTIME, Dependency, GemSpec
from pkgrepo.formats.rubygems.legacy import join_rows, list_row, marshal_gemspec, read_rows
from pkgrepo.formats.rubygems.marshal import MOST_DEPTH, UserDefined, integer, read_array, read_value
from pkgrepo.formats.rubygems.proxied.legacy_index import read_gemspec
from pkgrepo.formats.rubygems.push.gemspec_yaml import spec_of_fields

SPEC = GemSpec(
    name="full-gem",
    number="1.2.0.pre1",
    platform="x86_64-linux",
    original_platform="x86_64-linux",
    rubygems_version="3.3.15",
    date=dt.date(2021, 12, 31),
    summary="x",
    required_ruby=((">=", "2.5"), ("<", "4")),
    required_rubygems=((">", "1.3.1"),),
    dependencies=(
        Dependency("rack", RUNTIME, (("~>", "2.0"), (">=", "2.0.1"))),
        Dependency("rspec", DEVELOPMENT),
    ),
)


@pytest.mark.parametrize("number", [0, 1, -1, 122, 123, -123, -124, 255, 256, -256, -257, 65535, 2**29, -(2**30)])
def test_integers_are_read_as_they_are_written(number: int) -> None:
    assert read_value(b"\x04\x08i" + integer(number)) == number


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"[\x08:\x06a;\x000", ["a", "a", None]),  # a symbol, and the same again
        (b'[\x07I"\x06x\x06:\x06ET@\x06', ["x", "x"]),  # a string, and a link to it
        (b'{\x06I"\x06k\x06:\x06ETF', {"k": False}),
        (b"f\x081.5", 1.5),
        (b"l-\x07\x01\x00\x00\x01", -(2**24 + 1)),
        (b"o:\x06A\x06:\x07@bi\x06", {"b": 1}),
    ],
)
def test_values(data: bytes, value: object) -> None:
    assert read_value(b"\x04\x08" + data) == value


def test_time_is_counted_after_its_zone() -> None:
    # [Time, "a"] where the zone of the time is object 1, the time 2, and the string 3
    data = b'[\x08Iu:\tTime\x06x\x06:\tzoneI"\x08UTC\x06:\x06EFI"\x06a\x06;\x07F@\x08'
    time, text, link = read_value(b"\x04\x08" + data)
    assert isinstance(time, UserDefined)
    assert (text, link) == ("a", "a")


def test_gemspec_has_what_its_author_wrote() -> None:
    spec = spec_of_fields(read_gemspec(marshal_gemspec(SPEC)))
    assert (spec.full_name, spec.required_ruby, spec.required_rubygems, spec.dependencies) == (
        SPEC.full_name,
        SPEC.required_ruby,
        SPEC.required_rubygems,
        SPEC.dependencies,
    )


def test_rows_are_read_as_they_are_written() -> None:
    rows = [("a", "1.0", "ruby"), ("b-2", "2.0.pre", "java"), ("../x", "1.0", "ruby"), ("c", "1,2", "ruby")]
    data = join_rows([list_row(*row) for row in rows])
    assert list(read_rows(data)) == [("a", "1.0"), ("b-2", "2.0.pre-java")]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x04\x09[\x00",
        b"\x04\x08",
        b"\x04\x08c\x06A",  # a class
        b"\x04\x08;\x06",
        b"\x04\x08@\x06",
        b'\x04\x08"\x7f',
        b'\x04\x08"\xfa',
        b"\x04\x08f\x06x",
        b"\x04\x08" + b"[\x06" * (MOST_DEPTH + 1) + b"0",
        b"\x04\x08[\x04\xff\xff\xff\x3f0",
    ],
)
def test_what_is_damaged_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid):
        read_value(data)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for read in (read_value, lambda each: list(read_array(each)), lambda each: list(read_rows(each)), read_gemspec):
        with suppress(Invalid):
            read(b"\x04\x08" + data)


@given(st.integers(0, 400), st.binary(min_size=1, max_size=4))
def test_no_changed_gemspec_raises_anything_else(at: int, patch: bytes) -> None:
    data = marshal_gemspec(SPEC)
    changed = data[:at] + patch + data[at + len(patch) :]
    with suppress(Invalid):
        spec_of_fields(read_gemspec(changed))


def test_values_that_are_named_many_times_are_not_written_out() -> None:
    """Each list names the one before twice, so that the last one has 2**60 elements in all."""
    lists = b"".join(b"[\x07@" + integer(n) + b"@" + integer(n) for n in range(2, 62))
    fields = read_value(b"\x04\x08[\x07o:\x06A\x00[" + integer(61) + b"[\x00" + lists)
    dependency = {"name": fields[1][-1]}
    with pytest.raises(Invalid, match="no text"):
        spec_of_fields({"name": "a", "version": "1.0", "dependencies": [dependency]})

"""The writer and the reader of Ruby's Marshal format, and platforms."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
from contextlib import suppress

import pytest
from attrs import astuple
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.gemspec import DEVELOPMENT, RUNTIME, Dependency, GemSpec
from pkgrepo.formats.rubygems.legacy import (
    join_rows,
    list_row,
    marshal_gemspec,
    parse_platform,
    quick_gemspec,
    read_rows,
)
from pkgrepo.formats.rubygems.marshal import MOST_DEPTH, Stream, UserDefined, integer, read_array, read_value
from pkgrepo.formats.rubygems.proxied.legacy_index import read_gemspec
from pkgrepo.formats.rubygems.push.gemspec_yaml import spec_of_fields

ruby = pytest.mark.skipif(shutil.which("ruby") is None, reason="needs ruby")

# Written by Ruby 3.1: Marshal.dump([["tinygem", Gem::Version.new("0.1.0"), "ruby"]])
ONE_ROW = bytes.fromhex(
    "04085b065b0849220c74696e7967656d063a064554553a1147656d3a3a56657273696f6e5b0649220a302e312e30063b00544922097275627906"
    "3b0054"
)
MINIMAL = GemSpec(
    name="a",
    number="1.0.0",
    platform="ruby",
    original_platform="ruby",
    rubygems_version="3.5.11",
    date=dt.date(2024, 7, 9),
    summary="t",
    authors=("A",),
)
FULL = GemSpec(
    name="full-gem",
    number="1.2.0.pre1",
    platform="x86_64-linux",
    original_platform="x86_64-linux",
    rubygems_version="3.3.15",
    date=dt.date(2021, 12, 31),
    summary="Größe — 大きさ",
    description="line\nline",
    email=("a@example.org", "b@example.org"),
    authors=("Zoë", "B"),
    homepage="https://example.org/",
    licenses=("MIT", "Apache-2.0"),
    metadata={"source_code_uri": "https://example.org/source", "x": ""},
    required_ruby=((">=", "2.5"), ("<", "4")),
    required_rubygems=((">", "1.3.1"),),
    dependencies=(
        Dependency("rack", RUNTIME, (("~>", "2.0"), (">=", "2.0.1"))),
        Dependency("rspec", DEVELOPMENT),
        Dependency("early", RUNTIME, ((">=", "1.0.a"),)),
    ),
)

EVAL = """
require 'rubygems'; require 'json'; STDIN.binmode
s = Marshal.load(STDIN.read)
puts JSON.generate({
  full: s.full_name, platform: s.platform.to_s, date: s.date.strftime('%F'), summary: s.summary,
  description: s.description, email: s.email, authors: s.authors, homepage: s.homepage,
  licenses: s.instance_variable_get(:@license), metadata: s.metadata,
  ruby: s.required_ruby_version.to_s, rubygems: s.required_rubygems_version.to_s,
  dependencies: s.dependencies.map { |d| [d.name, d.type.to_s, d.requirement.to_s, d.prerelease?] },
})
"""


def run_ruby(script: str, data: bytes) -> bytes:
    return subprocess.run(["ruby", "-e", script], input=data, capture_output=True, check=True, timeout=60).stdout


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, "00"),
        (1, "06"),
        (122, "7f"),
        (123, "017b"),
        (255, "01ff"),
        (300, "022c01"),
        (65536, "03000001"),
        (2**24, "0400000001"),
        (-1, "fa"),
        (-123, "80"),
        (-124, "ff84"),
        (-256, "ff00"),
        (-257, "fefffe"),
    ],
)
def test_integers(number: int, data: str) -> None:
    assert integer(number).hex() == data


@pytest.mark.parametrize("number", [1 << 30, -(1 << 30) - 1])
def test_larger_integers_have_another_form(number: int) -> None:
    with pytest.raises(OverflowError):
        integer(number)


def test_lists_are_as_ruby_writes_them() -> None:
    assert join_rows([]) == bytes.fromhex("04085b00")
    assert join_rows([list_row("tinygem", "0.1.0", "ruby")]) == ONE_ROW


def test_the_smallest_gemspec() -> None:
    data = marshal_gemspec(MINIMAL)
    assert data.startswith(b"\x04\x08u:\x17Gem::Specification\x01\xe2\x04\x08[\x18")
    assert b"Iu:\tTime\r \x19\x1f\xc0\x00\x00\x00\x00\x06:\tzone" in data


@pytest.mark.parametrize(("year", "word"), [(1899, 0), (70000, 0xFFFF)])
def test_years_that_cannot_be_written_become_the_nearest(year: int, word: int) -> None:
    day = dt.date(min(year, 9999), 1, 1)
    data = Stream().utc_day(day)
    fields = int.from_bytes(data[data.index(b"\r") + 1 :][:4], "little")
    assert fields >> 14 & 0xFFFF == (word if year < 1900 else 9999 - 1900)


@ruby
def test_ruby_writes_the_same_lists() -> None:
    rows = [("a", "1.0", "ruby"), ("semi-colon", "2.0.pre", "java"), ("n" * 200, "1" * 130, "x86_64-linux")] * 3
    script = """
        require 'rubygems'; require 'json'; STDOUT.binmode
        rows = JSON.parse(STDIN.read).map { |n, v, p| [n.dup, Gem::Version.new(v.dup), p.dup] }
        rows = rows.map do |n, v, p|
          fresh = Gem::Version.allocate
          fresh.instance_variable_set(:@version, v.version.dup)
          [n, fresh, p]
        end
        print Marshal.dump(rows)
    """
    assert run_ruby(script, json.dumps(rows).encode()) == join_rows([list_row(*row) for row in rows])


@ruby
@pytest.mark.parametrize("spec", [MINIMAL, FULL], ids=["smallest", "full"])
def test_ruby_reads_gemspecs(spec: GemSpec) -> None:
    read = json.loads(run_ruby(EVAL, marshal_gemspec(spec)))
    assert read["full"] == spec.full_name
    assert read["platform"] == spec.platform
    assert read["date"] == spec.date.isoformat()
    assert read["summary"] == spec.summary
    assert read["description"] == spec.description
    assert read["email"] == (list(spec.email) if isinstance(spec.email, tuple) else spec.email)
    assert read["authors"] == list(spec.authors)
    assert read["homepage"] == spec.homepage
    assert read["licenses"] == list(spec.licenses)
    assert read["metadata"] == dict(spec.metadata)
    assert set(read["ruby"].split(", ")) == {" ".join(pair) for pair in spec.required_ruby}
    assert sorted(each[:2] for each in read["dependencies"]) == sorted([d.name, d.kind] for d in spec.dependencies)
    early = {name: prerelease for name, _, _, prerelease in read["dependencies"]}
    assert early.get("early") in {None, True}
    assert not early.get("rack")


@ruby
def test_strict_readers_take_quick_gemspecs() -> None:
    script = """
        require 'rubygems'; require 'rubygems/safe_marshal'; require 'zlib'; STDIN.binmode
        puts Gem::SafeMarshal.safe_load(Zlib::Inflate.inflate(STDIN.read)).full_name
    """
    if not run_ruby("begin; require 'rubygems/safe_marshal'; puts 1; rescue LoadError; end", b""):
        pytest.skip("this RubyGems has no strict reader")
    assert run_ruby(script, quick_gemspec(FULL)).decode().strip() == FULL.full_name


@given(st.text(st.sampled_from("abU;\x06"), min_size=1, max_size=300).map(lambda text: "n" + text.replace(";", "_")))
def test_only_the_first_row_names_symbols(name: str) -> None:
    row = list_row(name, "1.0", "ruby")
    assert join_rows([row, row]).count(b"Gem::Version") == 1
    assert join_rows([row, row]).endswith(row)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("x86_64-linux", ("x86_64", "linux", None)),
        ("x86_64-linux-musl", ("x86_64", "linux", "musl")),
        ("arm-linux-gnueabihf", ("arm", "linux", "gnueabihf")),
        ("i686-linux", ("x86", "linux", None)),
        ("x64-mingw-ucrt", ("x64", "mingw", "ucrt")),
        ("x86-mingw32", ("x86", "mingw32", None)),
        ("arm64-darwin-22", ("arm64", "darwin", "22")),
        ("universal-darwin9", ("universal", "darwin", "9")),
        ("java", (None, "java", None)),
        ("jruby", (None, "java", None)),
        ("java1.8.0", (None, "java", "1.8.0")),
        ("java-1.6", ("java", "unknown", None)),
        ("mswin32_80", ("x86", "mswin32", "80")),
        ("sparc-solaris2.8", ("sparc", "solaris", "2.8")),
        ("cpu-my_platform12", ("cpu", "my_platform", "12")),
        ("a-b-c-d", ("a", "unknown", None)),
    ],
)
def test_parts_of_a_platform(text: str, parts: tuple[str | None, str, str | None]) -> None:
    assert astuple(parse_platform(text)) == parts


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

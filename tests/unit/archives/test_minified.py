"""Code that people cannot read, and what of it is new in another archive."""

from __future__ import annotations

import io
import tarfile

import pytest

from pkgrepo.archives import inside
from pkgrepo.archives.inside import Signs, look_inside
from pkgrepo.archives.minified import (
    GROWTH,
    LEAST,
    LEAST_GROWTH,
    LONG,
    MOST_PLACES,
    Places,
    is_code,
    new_places,
    places_of,
    unreadable_bytes,
)
from pkgrepo.formats.npm.inside import look as look_npm
from pkgrepo.formats.python.inside import look as look_python
from tests.support.tarballs import make_tar_gz

PLAIN = b"const a = 1;\n" * 2000
LINE = b"x" * 5000 + b"\n"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *((f"a/b.{each}", True) for each in ("js", "mjs", "cjs", "ts", "min.js", "py", "rb", "sh", "ps1", "JS")),
        *((each, True) for each in ("bin/run", "a/b.d/run", "a.min-1.2.js")),
        *(
            (each, False)
            for each in ("a.json", "a.js.map", "a.css", "a.d.ts", "a.d.mts", "a.txt", ".npmrc", "a.so", "x/LICENSE")
        ),
        ("x/License", True),
    ],
)
def test_code_is_told_by_its_name(name: str, code: bool) -> None:
    assert is_code(name) == code


@pytest.mark.parametrize(
    ("name", "data", "count"),
    [
        ("a.js", b"", 0),
        ("a.js", PLAIN, 0),
        ("a.js", LINE, 5000),
        ("a.js", LINE[:-1], 5000),
        ("a.js", PLAIN + LINE + PLAIN + LINE, 10_000),
        ("a.js", b"y" * (LONG + 1) + b"\n" + PLAIN + b"y" * LONG, 0),
        ("a.js", (b"y" * LONG + b"\n") * 50, 0),
        ("a.js", (b"y" * (LONG + 1) + b"\n") * 50, 50 * (LONG + 1)),
        ("a.js", b"\n" * 900 + b"y" * LEAST + b"\n", LEAST),
        ("a.js", b"y" * (LEAST - 1) + b"\n", 0),
        ("a.js", b"let _0x12ab = _0x34;\n" * 10, LEAST),
        ("a.js", b"let _0x12ab = _0x34;\n" * 200, 4200),
        ("a.py", b"_0x12ab = _0x34\n" * 200, 0),
        ("a.py", b"import base64\nexec(base64.b64decode('cHJpbnQoMSk='))\n", LEAST),
        ("a.py", b"exec( zlib.decompress(base64.b64decode(x)))", LEAST),
        ("a.py", b"exec(compile(bytes.fromhex(x), '', 'exec'))", LEAST),
        ("a.py", b"exec(code)\nregex.exec(base64)\nb64decode(x)\n", 0),
        ("a", b"\x7fELF\0" + LINE, 0),
        ("a.js", b"\x7fELF\0" + LINE, 5005),
        ("a.js", b"exec(base64.b64decode(x))", 0),
    ],
)
def test_what_is_counted_of_a_file(name: str, data: bytes, count: int) -> None:
    assert unreadable_bytes(name, data, len(data)) == count


def test_what_is_not_looked_at_of_a_large_file_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unreadable_bytes("a.js", PLAIN, len(PLAIN) + 10_000) == 10_000
    monkeypatch.setattr(inside, "MOST_READ", len(PLAIN))
    found = look_inside(make_tar_gz({"a.js": PLAIN * 2}), "x.tgz", Signs())
    assert found.shape.unreadable == (("", "a.js", len(PLAIN)),)


def test_files_of_a_kind_in_a_folder_are_one_place_named_by_the_largest() -> None:
    found = {"dist/a.js": 3000, "dist/b.cjs": 5000, "dist/b.min.js": 4000, "dist/x/c.js": 2500, "i.js": 9000}
    assert places_of(found) == (
        ("", "i.js", 9000),
        ("dist", "b.cjs", 8000),
        ("dist", "b.min.js", 4000),
        ("dist/x", "c.js", 2500),
    )


def test_many_folders_are_one() -> None:
    found = {f"locale/{number}/cdn.min.js": 3000 + number for number in range(MOST_PLACES + 1)}
    total = sum(found.values())
    assert places_of(found) == (("locale", f"{MOST_PLACES}/cdn.min.js", total),)
    wide = {f"{number}/cdn.js": 3000 + number for number in range(MOST_PLACES + 1)}
    assert len(places_of(wide)) == MOST_PLACES
    assert ("0", "cdn.js", 3000) not in places_of(wide)  # the smallest


MIN = (("dist", "a.min.js", 50_000),)


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ((), (), []),
        ((), MIN, ["dist/a.min.js"]),
        (MIN, (), []),
        (MIN, (("dist", "b-2.min.js", 60_000),), []),
        (MIN, (("dist/esm", "b.min.js", 60_000),), []),
        (MIN, (("lib", "b.min.js", 60_000),), ["lib/b.min.js"]),
        (MIN, (*MIN, ("", "index.js", 3000)), ["index.js"]),
        (MIN, (*MIN, ("dist", "a.js", 3000)), ["dist/a.js"]),  # the same file, which people could read before
        ((("dist", "a.js", 3000),), (*MIN, ("dist", "a.js", 3000)), []),
        ((("", "a.js", 3000),), (("", "a.js", 3000), ("lib", "a.js", 3000)), ["lib/a.js"]),
        ((("", "a.py", 3000),), (("", "a.py", 3000), ("", "a.js", 3000)), ["a.js"]),
        (MIN, (("dist", "a.min.js", GROWTH * 50_001 + LEAST_GROWTH),), ["dist/a.min.js"]),
        (MIN, (("dist", "a.min.js", 50_001 + LEAST_GROWTH),), ["dist/a.min.js"]),
        (MIN, (("dist", "a.min.js", 50_000 + LEAST_GROWTH),), []),
        ((("dist", "a.js", 10**6),), (("dist", "a.js", GROWTH * 10**6),), []),
        ((), (("a", "a.js", 3000), ("b", "b.js", 9000)), ["b/b.js", "a/a.js"]),
    ],
)
def test_what_is_new(before: Places, after: Places, new: list[str]) -> None:
    assert [*new_places(before, after)] == new


def test_a_name_begins_after_what_is_another_one_in_each_version() -> None:
    tarball = make_tar_gz({"other/package.json": b"{}", "other/lib/a.js": LINE})
    assert look_npm(tarball, "a-1.tgz").shape.unreadable == (("lib", "a.js", 5000),)
    sources = make_tar_gz({"a-1/PKG-INFO": b"Name: a\n\n", "a-1/a/b.py": LINE})
    assert look_python(sources, "a-1.tar.gz").shape.unreadable == (("a", "b.py", 5000),)


def test_links_and_folders_are_no_code() -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, kind in (("a", tarfile.DIRTYPE), ("b.js", tarfile.SYMTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "c.js" if kind == tarfile.SYMTYPE else ""
            archive.addfile(member)
    assert look_inside(target.getvalue(), "x.tgz", Signs()).shape.unreadable == ()

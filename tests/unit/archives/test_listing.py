"""What is inside an archive, for people who look."""

from __future__ import annotations

import bz2
import gzip
import io
import tarfile
import zipfile
from hashlib import sha256

import pytest

from pkgrepo.archives.listing import LONGEST_TEXT, ListingLimits, find_readme, is_archive, list_archive, read_text_entry
from pkgrepo.errors import Invalid
from tests.support.conda_packages import make_conda
from tests.support.gems import make_gemspec, pack_gem
from tests.support.tarballs import make_tar, make_tar_gz

TAR = make_tar([("a/one.txt", b"one"), ("a/two.bin", b"\xff\x00")])


def make_zip(members: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.tgz", gzip.compress(TAR)),
        ("x-1.0.tar.gz", gzip.compress(TAR)),
        ("x-1.0-py_0.tar.bz2", bz2.compress(TAR)),
        ("x.tar", TAR),
        ("x-1.0-py3-none-any.WHL", make_zip({"a/one.txt": b"one", "a/two.bin": b"\xff\x00"})),
        ("x.jar", make_zip({"a/one.txt": b"one", "a/two.bin": b"\xff\x00"})),
        ("x-1.0.gem", pack_gem(make_gemspec(), data=gzip.compress(TAR))),
    ],
    ids=["tgz", "tar.gz", "tar.bz2", "tar", "wheel", "jar", "gem"],
)
def test_entries_are_listed_and_small_texts_are_read(name: str, data: bytes) -> None:
    assert is_archive(name)
    found = list_archive(data, name)
    assert [(each.name, each.kind, each.size) for each in found.entries] == [
        ("a/one.txt", "file", 3),
        ("a/two.bin", "file", 2),
    ]
    assert found.complete
    assert read_text_entry(data, name, "a/one.txt") == "one"
    assert read_text_entry(data, name, "a/absent") is None
    with pytest.raises(Invalid, match="is not text"):
        read_text_entry(data, name, "a/two.bin")


@pytest.mark.parametrize(
    ("name", "data"),
    [("x.tgz", gzip.compress(TAR)), ("x.jar", make_zip({"a/one.txt": b"one", "a/two.bin": b"\xff\x00"}))],
)
def test_digests_of_files_are_computed_when_asked_for(monkeypatch: pytest.MonkeyPatch, name: str, data: bytes) -> None:
    assert [each.sha256 for each in list_archive(data, name).entries] == ["", ""]
    one, two = list_archive(data, name, digests=True).entries
    assert (one.sha256, two.sha256) == (sha256(b"one").hexdigest(), sha256(b"\xff\x00").hexdigest())
    assert read_text_entry(data, name, "a/one.txt") == "one"
    found = list_archive(data, name, digests=True, limits=ListingLimits(digested=2))
    assert [bool(each.sha256) for each in found.entries] == [False, True]
    assert not list_archive(data, name, digests=True, limits=ListingLimits(digested=2, unpacked=1)).complete


def test_a_conda_package_has_the_entries_of_both_its_archives() -> None:
    data = make_conda(payload=[("site-packages/demo.py", b"pass\n")])
    names = [each.name for each in list_archive(data, "demo-1.0-py_0.conda").entries]
    assert "info/index.json" in names
    assert names[-1] == "site-packages/demo.py"
    assert read_text_entry(data, "demo-1.0-py_0.conda", "site-packages/demo.py") == "pass\n"


def test_links_and_folders_are_listed_as_such() -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for kind, name, link in ((tarfile.DIRTYPE, "d", ""), (tarfile.SYMTYPE, "l", "../../etc/passwd")):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link
            archive.addfile(info)
    found = list_archive(target.getvalue(), "x.tar").entries
    assert [(each.kind, each.link) for each in found] == [("folder", ""), ("link", "../../etc/passwd")]
    assert read_text_entry(target.getvalue(), "x.tar", "l") is None


def test_names_that_are_not_utf_8_can_be_shown_and_asked_for() -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.GNU_FORMAT, encoding="latin-1") as archive:
        info = tarfile.TarInfo("\xe4.txt")
        info.size = 2
        archive.addfile(info, io.BytesIO(b"ok"))
    (entry,) = list_archive(target.getvalue(), "x.tar").entries
    assert entry.name == "\ufffd.txt"
    assert read_text_entry(target.getvalue(), "x.tar", entry.name) == "ok"


def test_long_lists_and_large_archives_are_cut() -> None:
    data = make_tar_gz({str(number): b"x" * 1000 for number in range(20)})
    found = list_archive(data, "x.tgz", limits=ListingLimits(listed=5))
    assert (len(found.entries), found.complete) == (5, False)
    limits = ListingLimits(listed=1000, unpacked=5000)
    found = list_archive(data, "x.tgz", limits=limits)
    assert (len(found.entries), found.complete) == (4, False)
    assert read_text_entry(data, "x.tgz", "19", limits) is None


def test_what_is_beyond_the_limit_is_not_decompressed() -> None:
    data = make_tar_gz({"large": bytes(10_000_000), "behind": b""})
    broken = data[: len(data) // 2]  # decompressing it to its end would fail
    found = list_archive(broken, "x.tgz", limits=ListingLimits(unpacked=1000))
    assert ([each.name for each in found.entries], found.complete) == (["large"], False)


def test_a_long_text_is_refused_before_it_is_read() -> None:
    data = make_tar_gz({"long.txt": b"x" * (LONGEST_TEXT + 1), "longest.txt": b"x" * LONGEST_TEXT})
    with pytest.raises(Invalid, match="more than 65536 bytes"):
        read_text_entry(data, "x.tgz", "long.txt")
    assert read_text_entry(data, "x.tgz", "longest.txt") == "x" * LONGEST_TEXT


@pytest.mark.parametrize("name", ["x.tgz", "x.whl", "x.gem", "x.conda", "x.tar.bz2", "x.txt"])
def test_what_is_no_archive_is_refused(name: str) -> None:
    with pytest.raises(Invalid):
        list_archive(b"no archive" * 100, name)
    assert is_archive(name) == (name != "x.txt")


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"package/README.md": b"# A"}, ("package/README.md", "# A")),
        ({"readme.rst": b"A", "README.md": b"# B"}, ("README.md", "# B")),
        ({"lib/a/README.md": b"# deep"}, None),
        ({"README.md": b"x" * 70_000, "README.txt": b"short"}, ("README.txt", "short")),
        ({"README": b"\xff\x00"}, None),
        ({"README.md": b"", "READMEs/x": b"no"}, None),
    ],
    ids=["folder", "markdown-first", "deep", "too-long", "no-text", "empty"],
)
def test_the_readme_at_the_top_is_found(members: dict[str, bytes], found: tuple[str, str] | None) -> None:
    assert find_readme(gzip.compress(make_tar(list(members.items()))), "x.tgz") == found

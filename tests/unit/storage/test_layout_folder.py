"""Files of the readable layout: atomic, linked, and below their root."""

import errno
import os

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.storage.layout_folder import PIECE, TEMPORARY, Draft, LayoutFolder, shorten


@pytest.fixture
def blobs(tmp_path):
    folder = tmp_path / "blobs"
    (folder / "ab").mkdir(parents=True)
    (folder / "ab" / "one").write_bytes(b"one")
    (folder / "ab" / "two").write_bytes(b"two")
    return folder


@pytest.fixture
def layout(tmp_path, blobs):
    return LayoutFolder(tmp_path)


def test_a_file_is_a_hard_link_that_replaces_an_older_file(layout, blobs):
    assert not layout.shows("ab/one")
    layout.link("ab/one", "py/demo/1.0/file")
    assert os.path.samefile(layout.file("py/demo/1.0/file"), blobs / "ab" / "one")
    assert layout.is_linked("ab/one", "py/demo/1.0/file")
    assert layout.shows("ab/one")
    layout.link("ab/two", "py/demo/1.0/file")
    assert layout.read("py/demo/1.0/file") == b"two"
    assert not layout.is_linked("ab/one", "py/demo/1.0/file")
    assert not layout.shows("ab/one")
    assert (blobs / "ab" / "one").read_bytes() == b"one"


def test_linking_again_leaves_no_temporary(layout, blobs):
    for _ in range(2):  # as when another process has shown it meanwhile; POSIX has such a rename do nothing
        layout.link("ab/one", "py/demo/1.0/file")
    assert list((layout.root / TEMPORARY).iterdir()) == []
    assert os.stat(blobs / "ab" / "one").st_nlink == 2


def test_nothing_is_made_where_the_storage_is_missing(layout, blobs, tmp_path):
    blobs.rename(tmp_path / "away")
    for act in (
        lambda: layout.link("ab/one", "py/demo/1.0/file"),
        lambda: layout.write("py/demo/1.0/file", b""),
        layout.draft,
    ):
        with pytest.raises(FileNotFoundError):
            act()
    assert [each.name for each in tmp_path.iterdir()] == ["away"]


def test_a_missing_blob_leaves_no_trace(layout):
    with pytest.raises(FileNotFoundError):
        layout.link("ab/none", "py/demo/1.0/file")
    assert list(layout.walk()) == []
    assert not layout.is_linked("ab/none", "py/demo/1.0/file")


@pytest.mark.parametrize("number", ["EMLINK", "EPERM", "EXDEV"])
def test_where_links_are_refused_a_copy_is_made(layout, blobs, monkeypatch, number):
    import errno

    def refuse(*_):
        raise OSError(getattr(errno, number), "no")

    monkeypatch.setattr(os, "link", refuse)
    layout.link("ab/one", "py/demo/1.0/file")
    path = layout.file("py/demo/1.0/file")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one", 0o444)
    assert layout.is_linked("ab/one", "py/demo/1.0/file")


def test_other_errors_are_raised(layout, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(PermissionError):
        layout.link("ab/one", "py/demo/1.0/file")


@pytest.mark.parametrize(
    ("failing", "make"),
    [
        pytest.param("replace", lambda it: it.write("a/b", b"x" * 100), id="write-replace"),
        pytest.param("makedirs", lambda it: it.write("a/b", b"x" * 100), id="write-makedirs"),
        pytest.param("replace", lambda it: it.link("ab/one", "first"), id="link-replace"),
        pytest.param("makedirs", lambda it: it.link("ab/one", "a/b"), id="link-makedirs"),
    ],
)
def test_a_failed_write_leaves_no_temporary(layout, monkeypatch, make, failing):
    layout.write("first", b"")  # makes the folder of temporaries

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(OSError, match="no space"):
        make(layout)
    assert list((layout.root / TEMPORARY).iterdir()) == []


def test_a_short_write_is_continued(layout, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    layout.write("a/b", b"0123456789")
    assert layout.read("a/b") == b"0123456789"


def test_a_new_link_needs_no_temporary_name(layout, monkeypatch):
    layout.write("a/other", b"")
    monkeypatch.setattr(os, "replace", None)
    layout.link("ab/one", "a/b")
    assert layout.is_linked("ab/one", "a/b")


def test_removing_a_file_removes_empty_directories(layout):
    layout.write("py/demo/1.0/a", b"")
    layout.write("py/demo/1.1/b", b"")
    layout.remove("py/demo/1.0/a")
    layout.remove("py/demo/1.0/a")
    assert list(layout.walk()) == ["py/demo/1.1/b"]
    assert not (layout.root / "py/demo/1.0").exists()
    layout.remove("py/demo/1.1/b")
    assert layout.root.exists()
    assert not (layout.root / "py").exists()


def test_a_walk_is_sorted_and_may_begin_in_a_directory(layout):
    for path in ("b/x/1/f", "a/y/1/f", "a/x/2/f", "a/x/1/f"):
        layout.write(path, b"")
    assert list(layout.walk()) == ["a/x/1/f", "a/x/2/f", "a/y/1/f", "b/x/1/f"]
    assert list(layout.walk("a/x")) == ["a/x/1/f", "a/x/2/f"]
    assert list(layout.walk("nowhere")) == []
    assert layout.files("a/x") == []
    assert layout.files("a/x/1") == ["f"]
    assert layout.files("nowhere") == []


@pytest.mark.parametrize("path", ["", "/etc/passwd", "a/../../b", "..", "a//b", "a/./b", "a/b/", "a\0b", "."])
def test_paths_stay_below_the_root(layout, path):
    for use in (layout.read, layout.files, layout.remove, layout.file, lambda p: layout.write(p, b"")):
        with pytest.raises(Invalid):
            use(path)


def test_a_draft_is_visible_after_put(layout):
    draft = layout.draft()
    draft.write(b"one")
    draft.write(b"two")
    draft.close()
    assert draft.size == 6
    assert list(layout.walk()) == []
    assert layout.differs(draft.path, "images/app/index.json")
    layout.put(draft.path, "images/app/index.json")
    draft.discard()
    assert layout.read("images/app/index.json") == b"onetwo"
    assert os.listdir(layout.root / ".tmp") == []


def test_a_draft_that_is_discarded_leaves_no_trace(layout):
    draft = layout.draft()
    draft.write(b"one")
    draft.discard()
    assert os.listdir(layout.root / ".tmp") == []


def test_a_draft_on_a_full_disk_can_be_discarded(tmp_path):
    path = tmp_path / "draft"
    path.symlink_to("/dev/full")
    draft = Draft(str(path))
    draft.write(b"what is in the buffer still")
    draft.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("other", [b"on", b"onE", b"one!", b""])
def test_a_draft_differs_by_any_byte(layout, other):
    draft = layout.draft()
    draft.write(b"one")
    draft.close()
    layout.write("images/app/index.json", other)
    assert layout.differs(draft.path, "images/app/index.json")
    layout.write("images/app/index.json", b"one")
    assert not layout.differs(draft.path, "images/app/index.json")


def test_long_documents_are_compared_to_their_end(layout):
    begin = bytes(2 * PIECE)
    draft = layout.draft()
    draft.write(begin + b"two")
    draft.close()
    layout.write("images/app/index.json", begin + b"twO")
    assert layout.differs(draft.path, "images/app/index.json")


@pytest.mark.parametrize(
    ("path", "end"),
    [
        ("npm/pack/1.0.0-" + "a" * 250, "aa~b1acd8dc68930462"),
        ("npm/pack/1.0.0/pack-1.0.0-" + "a" * 250 + ".tgz", ".tgz"),
        ("npm/pack/1.0.0/pack-1.0.0-" + "a" * 250 + ".json", ".json"),
        ("py/p\N{LATIN SMALL LETTER U WITH DIAERESIS}" + "\N{SNOWMAN}" * 100, ""),
    ],
)
def test_names_that_are_too_long_are_shortened_by_a_rule(layout, path, end):
    short = shorten(path)
    assert max(len(each.encode()) for each in short.split("/")) in (253, 254, 255)
    assert short.count("/") == path.count("/")
    assert short.rpartition("/")[0] == path.rpartition("/")[0]
    assert short.endswith(end)
    assert shorten(short) == short
    assert shorten(path[:-6] + "b" + path[-5:]) != short
    layout.write(short, b"x")
    assert layout.read(short) == b"x"


def test_other_names_stay_as_they_are():
    for path in ("py/demo/1.0/demo-1.0.whl", "py/" + "a" * 255 + "/b", "x" * 255):
        assert shorten(path) == path

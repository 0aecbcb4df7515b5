"""Zips of modules that are made of folders and checkouts: what is in them, and of which version they are."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pytest

from pkgrepo.archives import module_zip as rules
from pkgrepo.client.packing import module_zip
from pkgrepo.client.packing.module_zip import is_vendored, pack_module
from pkgrepo.errors import Invalid
from pkgrepo.formats.go.archive import read_module
from tests.support.checkouts import commit, git, write_tree
from tests.support.go_modules import go_mod

LIB = {"go.mod": go_mod("example.com/lib").decode(), "lib.go": "package lib\n"}
Pack = Callable[..., tuple[str, dict[str, bytes]]]


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    """Pack a folder: its module with the version, and its files. The server reads the same hash."""

    def run(folder: Path, version: str = "") -> tuple[str, dict[str, bytes]]:
        made = pack_module(folder, version, Path(mkdtemp(dir=tmp_path)))
        found = read_module(made.path.read_bytes())
        assert (f"{found.module}@{found.version}", found.h1) == (made.what, made.h1)
        with zipfile.ZipFile(made.path) as archive:
            return made.what, {each.removeprefix(f"{made.what}/"): archive.read(each) for each in archive.namelist()}

    return run


def test_of_a_folder_is_packed_what_the_go_command_packs(tmp_path: Path, pack: Pack) -> None:
    more = {"sub/go.mod": "module example.com/lib/sub\n", "sub/deep/x.go": "", "vendor/a.b/c/c.go": "", "in/x.go": ""}
    folder = write_tree(tmp_path / "lib", {**LIB, **more, "vendor/modules.txt": "", ".hidden": "", "in/.svn/e": ""})
    (folder / "link.go").symlink_to("lib.go")
    with pytest.raises(Invalid, match="give its version by --version"):
        pack(folder)
    what, files = pack(folder, "v1.0.0")
    assert what == "example.com/lib@v1.0.0"
    assert sorted(files) == [".hidden", "go.mod", "in/x.go", "lib.go", "vendor/modules.txt"]
    with pytest.raises(Invalid, match="whose major version is v0 or v1"):
        pack(folder, "v2.0.0")
    (folder / "go.mod").unlink()
    with pytest.raises(Invalid, match=r"has no go\.mod"):
        pack(folder, "v1.0.0")


def test_of_a_checkout_is_packed_the_commit_of_the_tag(tmp_path: Path, pack: Pack) -> None:
    folder = write_tree(tmp_path / "lib", {**LIB, ".gitignore": "secret\n", "secret": "s"})
    (folder / "link.go").symlink_to("lib.go")
    commit(folder)
    with pytest.raises(Invalid, match=r"no tag such as v1\.0\.0"):
        pack(folder)
    commit(folder, "v1.0.0", "other", "v1", "sub/v1.5.0", "v2.0.0")
    write_tree(folder, {"lib.go": "package changed\n", "new.go": ""})
    what, files = pack(folder)
    assert what == "example.com/lib@v1.0.0"
    assert sorted(files) == [".gitignore", "go.mod", "lib.go"]
    assert files["lib.go"] == b"package lib\n"
    commit(folder, "v1.1.0", "v1.1.1")
    with pytest.raises(Invalid, match=r"several: v1\.1\.0, v1\.1\.1"):
        pack(folder)
    assert sorted(pack(folder, "v1.1.0")[1]) == [".gitignore", "go.mod", "lib.go", "new.go"]
    assert pack(folder, "v1.0.0")[1]["lib.go"] == b"package lib\n"  # the tag tells which commit it is
    assert pack(folder, "v1.2.0")[1]["lib.go"] == b"package changed\n"


def test_what_is_not_committed_is_told(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "lib", LIB)
    made = commit(folder, "v1.0.0")
    assert pack_module(folder, "", Path(mkdtemp(dir=tmp_path))).notes == ()
    write_tree(folder, {"new.go": ""})
    [note] = pack_module(folder, "", Path(mkdtemp(dir=tmp_path))).notes
    assert made[:12] in note


def test_a_module_below_the_root_has_its_own_tags_and_the_licence_of_the_repository(tmp_path: Path, pack: Pack) -> None:
    nested = {f"tools/{name}": text.replace("lib", "lib/tools") for name, text in LIB.items()}
    second = {"tools/v2/go.mod": go_mod("example.com/lib/tools/v2").decode(), "tools/v2/LICENSE": "its own"}
    folder = write_tree(tmp_path / "lib", {**LIB, **nested, **second, "LICENSE": "of all"})
    commit(folder, "v1.0.0", "tools/v0.3.0", "tools/v2.1.0")
    what, files = pack(folder / "tools")
    assert (what, sorted(files)) == ("example.com/lib/tools@v0.3.0", ["LICENSE", "go.mod", "lib.go"])
    assert files["LICENSE"] == b"of all"
    what, files = pack(folder / "tools" / "v2")
    assert (what, files["LICENSE"]) == ("example.com/lib/tools/v2@v2.1.0", b"its own")
    assert sorted(pack(folder)[1]) == ["LICENSE", "go.mod", "lib.go"]


def test_settings_of_git_change_nothing(tmp_path: Path, pack: Pack) -> None:
    attributes = "lib.go export-ignore\nversion.go export-subst\n*.bat text eol=crlf\n"
    more = {".gitattributes": attributes, "version.go": "// $Format:%H$\n", "run.bat": "x\n"}
    folder = write_tree(tmp_path / "lib", {**LIB, **more})
    commit(folder, "v1.0.0")
    git(folder, "config", "core.autocrlf", "true")
    _, files = pack(folder)
    assert files["lib.go"] == b"package lib\n"
    assert files["version.go"] == b"// $Format:%H$\n"
    assert files["run.bat"] == b"x\r\n"  # as the go command has it, too


def test_a_folder_of_which_git_tracks_nothing_is_a_plain_one(tmp_path: Path, pack: Pack) -> None:
    above = write_tree(tmp_path / "above", {".gitignore": "built\n"})
    commit(above, "v1.0.0")
    folder = write_tree(above / "built", LIB)
    assert sorted(pack(folder, "v1.0.0")[1]) == ["go.mod", "lib.go"]
    (above / ".git" / "HEAD").unlink()
    with pytest.raises(Invalid, match="git says"):  # and not all files of what may be a checkout
        pack(folder, "v1.0.0")


@pytest.mark.parametrize(
    ("name", "early", "late"),
    [
        ("vendor/modules.txt", False, True),
        ("vendor/a.b/c.go", True, True),
        ("vendor/a.go", False, False),
        ("pkg/vendor/vendor.go", True, False),
        ("pkg/vendor/foo/foo.go", True, True),
        ("p/vendor/v.go", True, False),
        ("lib.go", False, False),
    ],
)
def test_vendored_packages_are_known_as_the_language_has_it(name: str, *, early: bool, late: bool) -> None:
    assert is_vendored(name, without_list=False) is early
    assert is_vendored(name, without_list=True) is late


def test_what_no_zip_may_have_is_refused(tmp_path: Path, pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, why in (("A:b.go", "not all systems"), ("LIB.go", "one name without case")):
        folder = write_tree(tmp_path / name[0], {**LIB, name: ""})
        with pytest.raises(Invalid, match=why):
            pack(folder, "v1.0.0")
    folder = write_tree(tmp_path / "large", {**LIB, "LICENSE": "x" * 3000})
    monkeypatch.setattr(rules, "LARGEST_FILE", 2000)
    with pytest.raises(Invalid, match="a LICENSE of more than 2000 bytes"):
        pack(folder, "v1.0.0")
    monkeypatch.setattr(module_zip, "LARGEST", 1000)
    monkeypatch.setattr(rules, "LARGEST_FILE", 10_000)
    with pytest.raises(Invalid, match="more than 1000 bytes"):
        pack(folder, "v1.0.0")

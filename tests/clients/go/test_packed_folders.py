"""``pkgrepo upload`` of a checkout: the zip has the hash that the go command computes of the same repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.checkouts import commit, write_tree
from tests.support.command_line import Program
from tests.support.configurations import hosted
from tests.support.go_clients import GoBench
from tests.support.go_modules import go_mod
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.clients
CONFIG = hosted("go", "own")
ROOT = "example.com/team/lib.git"  # by the ending the go command knows that it is a git repository


def module(path: str, language: str) -> dict[str, str]:
    """A module with all that is left out of zips, and what attributes of git would change."""
    return {
        "go.mod": go_mod(path, go=language).decode(),
        "lib.go": "package lib\n\n// $Format:%H$\nconst Name = 1\n",
        "left.go": "package lib\n",
        "run.bat": "echo\n",
        "vendor/modules.txt": "# a.b/c v1.0.0\n",
        "vendor/a.b/c/c.go": "package c\n",
        "inner/vendor/vendor.go": "package vendor\n",
        "inner/vendor/x/x.go": "package x\n",
        "other/go.mod": "module example.com/other\n",
        "other/other.go": "package other\n",
        "ü/ü.txt": "ü\n",
        ".hg_archival.txt": "x\n",
    }


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    attributes = "left.go export-ignore\nlib.go export-subst\n*.bat text eol=crlf\n"
    folder = write_tree(tmp_path / "checkout", {".gitattributes": attributes, "LICENSE": "All rights reserved\n"})
    for place, path, language in (
        (".", ROOT, "1.20"),
        ("sub", f"{ROOT}/sub", "1.24"),
        ("sub/v2", f"{ROOT}/sub/v2", "1.21.5"),
    ):
        write_tree(folder / place, module(path, language))
        (folder / place / "link.go").symlink_to("lib.go")
    commit(folder, "v1.0.0", "sub/v0.1.0", "sub/v2.0.0-rc.1")
    write_tree(folder, {"later.go": "package lib\n", "sub/later.go": "package lib\n"})
    return folder


def test_a_packed_checkout_has_the_hash_of_the_go_command(
    server: ServerProcess, checkout: Path, tmp_path: Path
) -> None:
    program = Program(tmp_path / "program", server.url)
    program.folder.mkdir()
    program.log_in()
    direct = GoBench(tmp_path / "direct", "direct")
    home = Path(direct.environ["HOME"])
    settings = f'[url "{checkout}"]\n\tinsteadOf = https://example.com/team/lib\n[safe]\n\tdirectory = *\n'
    (home / ".gitconfig").write_text(settings)
    ours = GoBench(tmp_path / "ours", f"{server.url}/repositories/main/own")
    for place, named in (
        (".", f"{ROOT}@v1.0.0"),
        ("sub", f"{ROOT}/sub@v0.1.0"),
        ("sub/v2", f"{ROOT}/sub/v2@v2.0.0-rc.1"),
    ):
        wanted = json.loads(direct.go("mod", "download", "-json", named))
        [sent] = program.json("upload", "main/own", checkout / place)
        assert (sent["packed"], sent["h1"]) == (named, wanted["Sum"])
        found = json.loads(ours.go("mod", "download", "-json", named))
        assert (found["Sum"], found["GoModSum"]) == (wanted["Sum"], wanted["GoModSum"])
    ours.go("get", f"{ROOT}@latest")
    assert f"{ROOT} v1.0.0 {json.loads(ours.go('mod', 'download', '-json', f'{ROOT}@v1.0.0'))['Sum']}" in ours.sums


def test_a_plain_folder_has_the_hash_of_what_is_downloaded(server: ServerProcess, tmp_path: Path) -> None:
    program = Program(tmp_path / "program", server.url)
    program.folder.mkdir()
    program.log_in()
    folder = write_tree(tmp_path / "plain", module("example.com/plain/v3", "1.24"))
    said = program.refused(2, "upload", "main/own", folder)
    assert "--version" in said
    [sent] = program.json("upload", "main/own", folder, "--version", "v3.1.0")
    ours = GoBench(tmp_path / "ours", f"{server.url}/repositories/main/own")
    found = json.loads(ours.go("mod", "download", "-json", "example.com/plain/v3@v3.1.0"))
    assert found["Sum"] == sent["h1"]

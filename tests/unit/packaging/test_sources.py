"""The staged sources of a release, and archives that are the same for the same content."""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

from pkgrepo import __version__
from pkgrepo.packaging.archives import Entry, entries_below, write_tar_gz
from pkgrepo.packaging.sources import INDEX_PAGE, ReleaseFailed, index_page, stage

ROOT = Path(__file__).parents[3]
FILES_URL = "https://git.example/pkgrepo/blob/v1/"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that staging reads."""
    folder = tmp_path / "checkout"
    for name in ("pyproject.toml", "README.md", "pkgrepo/__init__.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
    (folder / "pkgrepo" / "packaging").mkdir()
    (folder / "pkgrepo" / "packaging" / "x").write_text("")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "--quiet", "-m", "a")
    return folder


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_is_staged_with_its_name_and_addresses(checkout: Path, tmp_path: Path) -> None:
    found = stage(checkout, tmp_path / "work", files_url=FILES_URL, epoch=None)
    commit = git(checkout, "rev-parse", "HEAD")
    assert (found.version, found.commit) == (__version__, commit)
    assert found.epoch == int(git(checkout, "log", "-1", "--format=%ct"))
    assert (found.folder / "pkgrepo" / "commit.txt").read_text() == f"{commit}\n"
    project = tomllib.loads((found.folder / "pyproject.toml").read_text())["project"]
    assert project["readme"] == INDEX_PAGE
    assert project["urls"]["Changelog"] == f"{FILES_URL}CHANGELOG.md"
    assert (found.folder / "README.md").read_text() == (checkout / "README.md").read_text()
    assert found.environment["SOURCE_DATE_EPOCH"] == str(found.epoch)


def test_a_checkout_that_differs_from_its_commit_is_refused(checkout: Path, tmp_path: Path) -> None:
    (checkout / "README.md").write_text("other")
    with pytest.raises(ReleaseFailed, match="differs from its commit"):
        stage(checkout, tmp_path / "work", files_url=None, epoch=None)


def test_the_page_of_an_index_has_no_dead_links() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "](pkgrepo/docs/" in readme
    plain = index_page(readme, None)
    assert re.findall(r"\]\((?!https?:)", plain) == []
    assert "npm, pnpm, yarn, bun" in plain
    assert "![" in readme
    assert "![" not in plain
    assert readme.count("\n| simple page") == plain.count("\n| simple page") == 1
    linked = index_page(readme, FILES_URL)
    assert f"]({FILES_URL}pkgrepo/docs/npm.md)" in linked
    assert linked.count(f"]({FILES_URL}pkgrepo/docs/pictures/") == readme.count("![")


def test_archives_depend_on_content_alone(tmp_path: Path) -> None:
    made = []
    for number in range(2):
        folder = tmp_path / str(number)
        for name in reversed(["b/c", "a", "run"]) if number else ["b/c", "a", "run"]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
            os.utime(folder / name, (number, number))
        (folder / "a").chmod(0o600 if number else 0o644)
        (folder / "run").chmod(0o4755)
        (folder / "link").symlink_to("a")
        target = tmp_path / f"{number}.tar.gz"
        write_tar_gz(target, [Entry("top"), *entries_below(folder, "top/")], 1_000_000_000)
        made.append(target.read_bytes())
    assert made[0] == made[1]
    with tarfile.open(tmp_path / "0.tar.gz") as archive:
        modes = {each.name: (each.mode, each.uid, each.uname, each.mtime) for each in archive}
    assert modes["top/run"] == (0o755, 0, "", 1_000_000_000)
    assert modes["top/a"][0] == 0o644
    assert set(modes) == {"top", "top/a", "top/b", "top/b/c", "top/link", "top/run"}

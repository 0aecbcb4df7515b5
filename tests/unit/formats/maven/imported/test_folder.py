"""A folder is walked a directory at a time, and what is wrong in it is a problem of its own."""

import os

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.imported.folder import walk
from pkgrepo.gateway.imported.places import open_file


def make(root, *paths):
    for path in paths:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.encode())


def found(root, **how):
    every = list(walk(str(root), **{"follow_links": False, **how}))
    files = [target.path for each in every for target, _ in each.files]
    return every, files, [problem for each in every for problem in each.problems]


def test_directories_come_after_those_below_and_poms_first(tmp_path):
    make(tmp_path, "g/a/1/a-1.jar", "g/a/1/a-1.pom", "g/a/maven-metadata.xml", "g/a/2/a-2.pom", "x.txt")
    every, files, problems = found(tmp_path)
    assert [each.path for each in every] == ["g/a/1", "g/a/2", "g/a", "g", ""]
    assert files == ["g/a/1/a-1.pom", "g/a/1/a-1.jar", "g/a/2/a-2.pom", "g/a/maven-metadata.xml", "x.txt"]
    assert problems == []


def test_checksums_lie_beside_what_they_are_of(tmp_path):
    make(tmp_path, "g/a/1/a-1.jar", "g/a/1/a-1.jar.sha1", "g/a/1/a-1.jar.md5", "g/a/1/gone.sha256")
    every, files, _ = found(tmp_path)
    assert files == ["g/a/1/a-1.jar"]
    sums = {key: os.path.basename(place) for key, place in every[0].sums.items()}
    assert sums == {
        ("g/a/1/a-1.jar", "sha1"): "a-1.jar.sha1",
        ("g/a/1/a-1.jar", "md5"): "a-1.jar.md5",
        ("g/a/1/gone", "sha256"): "gone.sha256",
    }


def test_bookkeeping_and_hidden_names_are_left_out(tmp_path):
    make(
        tmp_path, ".repository.json", ".pkgrepo/x.json", "g/a/1/_remote.repositories", "g/a/1/a-1.jar.lastUpdated",
        "g/a/maven-metadata-central.xml", "g/a/maven-metadata-central.xml.sha1", "g/a/resolver-status.properties",
        "g/a/1/a-1.jar.part", "g/a/1/a-1.jar",
    )  # fmt: skip
    every, files, problems = found(tmp_path)
    assert (files, problems) == (["g/a/1/a-1.jar"], [])
    assert sum(each.skipped for each in every) == 8


def test_what_is_no_file_is_a_problem(tmp_path):
    make(tmp_path, "g/a/1/a-1.jar", "secret")
    os.mkfifo(tmp_path / "g/a/1/pipe")
    (tmp_path / "g/a/1/link").symlink_to(tmp_path / "secret")
    (tmp_path / "g/a/1/gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "g/a/1/line\nend").write_bytes(b"")
    (tmp_path / "g/a/1/back\\slash").write_bytes(b"")
    os.close(os.open(os.fsencode(tmp_path) + b"/g/a/1/\xff", os.O_CREAT))
    _, files, problems = found(tmp_path)
    assert files == ["g/a/1/a-1.jar", "secret"]
    assert len(problems) == 6
    assert all(problem.isascii() and problem.isprintable() for problem in problems)
    _, files, problems = found(tmp_path, follow_links=True)
    assert "g/a/1/link" in files
    assert len(problems) == 5


def test_links_to_directories_around_are_not_followed_for_ever(tmp_path):
    make(tmp_path, "g/a/1/a-1.jar")
    (tmp_path / "g/a/loop").symlink_to(tmp_path / "g")
    (tmp_path / "h").symlink_to(tmp_path / "g/a")
    _, files, problems = found(tmp_path, follow_links=True)
    assert files == ["g/a/1/a-1.jar", "h/1/a-1.jar"]
    assert len(problems) == 2


def test_a_folder_that_is_too_deep_is_a_problem(tmp_path):
    (tmp_path / "/".join(["d" * 200] * 6)).mkdir(parents=True)  # few, since pytest removes them recursively
    _, files, problems = found(tmp_path)
    assert (files, len(problems)) == ([], 1)


def test_a_source_is_a_regular_file_and_no_link(tmp_path):
    make(tmp_path, "file")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("file")
    os.close(open_file(str(tmp_path / "file")))
    with pytest.raises(Invalid):
        open_file(str(tmp_path / "pipe"))
    with pytest.raises(OSError, match="symbolic links"):
        open_file(str(tmp_path / "link"))
    os.close(open_file(str(tmp_path / "link"), follow=True))

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pkgrepo.errors import Conflict
from pkgrepo.storage.blobs.durability import Durability
from pkgrepo.storage.blobs.paths import StorePaths, is_locator, is_upload_id, new_locator, new_upload_id
from tests.support.timeouts import TIMEOUT_S

DURABILITY = Durability("never")
FOLDERS = [Path("/dev/shm"), Path.cwd()]  # which are often on two file systems


def test_new_names_follow_their_grammar_and_differ():
    locators = {new_locator("ab" * 32) for _ in range(100)}
    assert len(locators) == 100
    assert all(map(is_locator, locators))
    uploads = {new_upload_id() for _ in range(100)}
    assert len(uploads) == 100
    assert all(map(is_upload_id, uploads))


def test_a_new_root_gets_every_folder_and_an_id_that_stays(tmp_path):
    paths = StorePaths(tmp_path / "deep" / "store")
    uid = paths.prepare(DURABILITY, None)
    assert len(list(paths.blobs.iterdir())) == 256
    assert paths.prepare(DURABILITY, None) == paths.prepare(DURABILITY, uid) == uid
    assert {each.name for each in paths.root.iterdir()} == {"format", "blobs", "uploads"}


def test_a_root_of_another_storage_is_refused_untouched(tmp_path):
    StorePaths(tmp_path).prepare(DURABILITY, "one")
    with pytest.raises(Conflict, match="belongs to storage one, not to two"):
        StorePaths(tmp_path).prepare(DURABILITY, "two")


def test_a_folder_of_other_things_is_refused_untouched(tmp_path):
    (tmp_path / "passwd").touch()
    with pytest.raises(Conflict, match="'passwd'"):
        StorePaths(tmp_path).prepare(DURABILITY, None)
    assert [each.name for each in tmp_path.iterdir()] == ["passwd"]


def test_files_that_the_file_system_makes_are_allowed(tmp_path):
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".snapshots").mkdir()
    assert StorePaths(tmp_path).prepare(DURABILITY, None)


@pytest.mark.parametrize("text", ["", "pkgrepo blobs 2\nstorage x\n", "something else", "\x00\xff"])
def test_another_format_is_refused(tmp_path, text):
    (tmp_path / "format").write_text(text)
    with pytest.raises(Conflict, match="version 1"):
        StorePaths(tmp_path).prepare(DURABILITY, None)
    assert [each.name for each in tmp_path.iterdir()] == ["format"]


def test_processes_that_start_together_agree_on_the_id(tmp_path):
    barrier = threading.Barrier(8)

    def prepare() -> str:
        barrier.wait(TIMEOUT_S)
        return StorePaths(tmp_path / "store").prepare(DURABILITY, None)

    with ThreadPoolExecutor(8) as threads:
        found = {each.result() for each in [threads.submit(prepare) for _ in range(8)]}
    assert len(found) == 1


def test_folders_on_two_file_systems_are_refused(tmp_path):
    elsewhere = next((each for each in FOLDERS if each.stat().st_dev != tmp_path.stat().st_dev), None)
    if elsewhere is None:
        pytest.skip("this machine has one file system only")
    (tmp_path / "uploads").symlink_to(elsewhere)
    with pytest.raises(Conflict, match="one file system"):
        StorePaths(tmp_path).prepare(DURABILITY, None)


def test_a_file_system_without_unnamed_files_is_recognised(tmp_path, monkeypatch):
    paths = StorePaths(tmp_path)
    paths.prepare(DURABILITY, None)
    monkeypatch.setattr("pkgrepo.storage.blobs.paths.link_descriptor", raise_error)
    assert not paths.supports_unnamed_files()
    assert list(paths.uploads.iterdir()) == []


def raise_error(*_: object) -> None:
    raise OSError


def test_a_forked_process_draws_other_digits():
    new_upload_id()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, f"{new_upload_id()} {new_locator('ab' * 32)}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 1000).decode().split()
    os.close(reading)
    os.close(writing)
    assert is_upload_id(theirs[0])
    assert is_locator(theirs[1])
    mine = {new_upload_id() for _ in range(200)} | {new_locator("ab" * 32) for _ in range(200)}
    assert len(mine) == 400
    assert mine.isdisjoint(theirs)

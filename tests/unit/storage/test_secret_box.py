"""Secrets that are encrypted with a key in a file."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from pkgrepo.errors import Conflict, SecretUnreadable
from pkgrepo.storage.secret_box import SecretBox

SECRET = "p\u00e4ss word"


def test_a_secret_opens_in_its_context_after_a_restart(tmp_path):
    sealed = SecretBox.load(tmp_path / "key").seal(SECRET, "here")
    assert SecretBox.load(tmp_path / "key").open(sealed, "here") == SECRET


def test_the_key_is_readable_by_its_owner_only_and_nothing_else_is_left(tmp_path):
    before = os.umask(0)
    try:
        SecretBox.load(tmp_path / "key")
    finally:
        os.umask(before)
    assert [each.name for each in tmp_path.iterdir()] == ["key"]
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    (tmp_path / "key").chmod(0o644)
    SecretBox.load(tmp_path / "key")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_processes_that_start_together_get_one_key(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        boxes = list(pool.map(lambda _: SecretBox.load(tmp_path / "key"), range(8)))
    sealed = boxes[0].seal(SECRET, "")
    assert {each.open(sealed, "") for each in boxes} == {SECRET}


def test_the_same_secret_is_sealed_differently_each_time(tmp_path):
    box = SecretBox.load(tmp_path / "key")
    assert box.seal(SECRET, "") != box.seal(SECRET, "")


def test_another_context_another_key_and_damaged_text_do_not_open(tmp_path):
    box = SecretBox.load(tmp_path / "key")
    sealed = box.seal(SECRET, "here")
    damaged = sealed[:-4] + ("AAAA" if sealed[-4:] != "AAAA" else "BBBB")
    for one, text, context in (
        (box, sealed, "there"),
        (SecretBox.load(tmp_path / "other"), sealed, "here"),
        (box, damaged, "here"),
        (box, sealed[:10], "here"),
        (box, "", "here"),
        (box, "\u00fc", "here"),
    ):
        with pytest.raises(SecretUnreadable):
            one.open(text, context)


@pytest.mark.parametrize("content", ["", "short", "A" * 44 + "!", "\u00fc" * 32])
def test_a_file_without_a_key_is_refused_and_kept(tmp_path, content):
    (tmp_path / "key").write_text(content)
    with pytest.raises(Conflict, match="holds no key"):
        SecretBox.load(tmp_path / "key")
    assert (tmp_path / "key").read_text() == content

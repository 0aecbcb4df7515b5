"""Who is on a folder, also after a crash."""

import subprocess
import sys
from datetime import timedelta

from pkgrepo.storage.process_lock import EPOCH, NAME, Presence
from tests.support.processes import ROOT

CHILD = """
import sys
from pathlib import Path
from pkgrepo.storage.process_lock import Presence
presence = Presence(Path(sys.argv[1]))
print(presence.enter() is not None, flush=True)
sys.stdin.read()
"""


def child(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().strip() == "True"


def end(process):
    process.kill()
    process.communicate()


def test_the_first_is_alone_and_the_next_is_not(tmp_path):
    first, second = Presence(tmp_path), Presence(tmp_path)
    assert first.enter() is not None
    assert second.enter() is None
    first.leave()
    third = Presence(tmp_path)
    assert third.enter() is None  # the second is still there
    second.leave()
    third.leave()
    third.leave()
    assert Presence(tmp_path).enter() is not None


def test_a_process_is_there_until_it_is_killed(tmp_path):
    process, alone = child(tmp_path)
    assert alone
    ours = Presence(tmp_path)
    assert ours.enter() is None
    end(process)
    ours.leave()
    assert ours.enter() is not None
    second, alone = child(tmp_path)
    assert not alone
    end(second)
    ours.leave()


def test_the_time_is_that_of_the_file_system(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    before.touch()
    presence = Presence(tmp_path)
    since = presence.enter()
    after.touch()
    microseconds = (since - EPOCH) // timedelta(microseconds=1)
    assert before.stat().st_mtime_ns // 1000 <= microseconds <= after.stat().st_mtime_ns // 1000
    assert after.stat().st_mtime >= since.timestamp()
    presence.leave()


def test_a_folder_that_cannot_be_marked_may_have_others(tmp_path):
    presence = Presence(tmp_path / "nowhere")
    assert presence.enter() is None
    presence.leave()


def test_whether_a_folder_is_in_use_is_asked_without_a_trace(tmp_path):
    first = Presence(tmp_path)
    assert not Presence(tmp_path).is_shared()
    assert list(tmp_path.iterdir()) == []
    assert not Presence(tmp_path / "nowhere").is_shared()
    first.enter()
    before = (tmp_path / NAME).stat()
    assert Presence(tmp_path).is_shared()
    first.leave()
    assert not Presence(tmp_path).is_shared()
    assert (tmp_path / NAME).stat() == before

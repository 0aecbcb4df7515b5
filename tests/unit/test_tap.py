"""What twistd's part of the program does before the server is made."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

from pkgrepo.tap import _log_file

RAISED = """
import resource
from pkgrepo.tap import raise_descriptor_limit
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, min(hard, 1000)))
raise_descriptor_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""

SETTLED = """
import gc
from pkgrepo.process.garbage import settle
before = len(gc.get_objects())
settle()
print(before, len(gc.get_objects()))
"""


def test_the_server_may_open_as_many_files_as_the_system_allows() -> None:
    done = subprocess.run([sys.executable, "-c", RAISED], capture_output=True, text=True, check=True)
    soft, hard = done.stdout.split()
    assert soft == hard


def test_full_collections_do_not_look_at_what_the_program_consists_of() -> None:
    done = subprocess.run([sys.executable, "-c", SETTLED], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < before / 10


def test_a_log_in_a_file_is_read_by_its_owner_only(tmp_path: Path) -> None:
    old, new = tmp_path / "old.log", tmp_path / "new.log"
    old.write_text("of an earlier release\n")
    old.chmod(0o644)
    for path in (old, new):
        file = _log_file({"logger": None, "logfile": str(path), "nodaemon": False})
        assert file is not None
        file.close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

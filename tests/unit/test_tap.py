"""What twistd's part of the program does before the server is made."""

from __future__ import annotations

import subprocess
import sys

RAISED = """
import resource
from pkgrepo.tap import _raise_descriptor_limit
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, min(hard, 1000)))
_raise_descriptor_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""

SETTLED = """
import gc
from pkgrepo.tap import _settle
before = len(gc.get_objects())
_settle()
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

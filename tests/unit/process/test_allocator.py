"""Memory for buffers, watched by the page faults of a process of its own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

TRANSFER = """
import resource
import sys
from pkgrepo.process.allocator import keep_freed_buffers

if sys.argv[1] == "kept":
    assert keep_freed_buffers()
for turn in range(101):
    if turn == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    pieces = [bytes(64 * 1024) for _ in range(16)]
    whole = b"".join(pieces[:8])
    del pieces, whole
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(mode: str) -> int:
    """Of a hundred turns in which 1.5 MiB are taken and given back."""
    done = subprocess.run(
        [sys.executable, "-c", TRANSFER, mode], capture_output=True, text=True, timeout=60, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_buffers_are_made_of_memory_that_is_there() -> None:
    assert page_faults("kept") < page_faults("left alone") / 10

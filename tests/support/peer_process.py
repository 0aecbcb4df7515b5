"""Runs other package servers, as upstreams of ours."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.timeouts import TIMEOUT_S


@contextmanager
def peer_process(command: Sequence[str | Path], folder: Path, url: str) -> Iterator[None]:
    """Run a server in a folder until the end of the block, which begins when the server answers at a URL."""
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL)
    try:
        ends = time.monotonic() + TIMEOUT_S
        while not _answers(url):
            assert process.poll() is None, f"{command[0]} has exited"
            assert time.monotonic() < ends, f"{command[0]} does not answer"
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def _answers(url: str) -> bool:
    try:
        urlopen(url, timeout=TIMEOUT_S).close()
    except URLError:
        return False
    return True

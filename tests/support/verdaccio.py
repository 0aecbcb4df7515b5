"""Verdaccio, another npm registry, as an upstream."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.client_programs import ROOT, absent, program
from tests.support.timeouts import TIMEOUT_S
from tests.support.upstreams.server import closed_port

PROGRAM = ROOT / ".cache" / "bench" / "node" / "node_modules" / ".bin" / "verdaccio"

_CONFIGURATION = """
storage: {folder}/storage
web: {{ enable: false }}
auth: {{ htpasswd: {{ file: {folder}/htpasswd }} }}
uplinks: {{}}
packages: {{ "**": {{ access: $all, publish: $all }} }}
log: {{ type: stdout, level: error }}
"""


@contextmanager
def verdaccio(folder: Path) -> Iterator[str]:
    """Run an empty registry to which everybody may publish, without uplinks, and return its URL."""
    if not PROGRAM.exists():
        absent("verdaccio is not installed (bin/bench installs it)")
    configuration = folder / "verdaccio.yaml"
    configuration.write_text(_CONFIGURATION.format(folder=folder))
    address = f"127.0.0.1:{closed_port()}"
    process = subprocess.Popen([program("node"), PROGRAM, "-c", configuration, "-l", address], cwd=folder)
    try:
        _wait_ready(process, f"http://{address}/-/ping")
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def _wait_ready(process: subprocess.Popen[bytes], url: str) -> None:
    ends = time.monotonic() + TIMEOUT_S
    while not _answers(url):
        assert process.poll() is None, "verdaccio has exited"
        assert time.monotonic() < ends, "verdaccio does not answer"
        time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        urlopen(url, timeout=TIMEOUT_S).close()
    except URLError:
        return False
    return True

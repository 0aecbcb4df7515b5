"""Verdaccio, another npm registry, as an upstream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.client_programs import ROOT, program
from tests.support.peer_process import peer_process
from tests.support.ports import closed_port

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
    """
    Run an empty registry to which everybody may publish, without uplinks, and return its URL.

    Without it the test is skipped in CI, too: it is a peer for the bench, and no client.
    """
    if not PROGRAM.exists():
        pytest.skip("verdaccio is not installed (bin/bench installs it)")
    configuration = folder / "verdaccio.yaml"
    configuration.write_text(_CONFIGURATION.format(folder=folder))
    address = f"127.0.0.1:{closed_port()}"
    with peer_process(
        [program("node"), PROGRAM, "-c", configuration, "-l", address], folder, f"http://{address}/-/ping"
    ):
        yield f"http://{address}"

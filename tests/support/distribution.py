"""CNCF distribution, another container registry, as an upstream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.client_programs import program
from tests.support.peer_process import peer_process
from tests.support.ports import closed_port

_CONFIGURATION = """
version: 0.1
storage: {{ filesystem: {{ rootdirectory: {folder}/images }} }}
http: {{ addr: {address} }}
log: {{ level: error, accesslog: {{ disabled: true }} }}
"""


@contextmanager
def distribution(folder: Path) -> Iterator[str]:
    """Run an empty registry to which everybody may push, and return its URL."""
    configuration = folder / "distribution.yaml"
    address = f"127.0.0.1:{closed_port()}"
    configuration.write_text(_CONFIGURATION.format(folder=folder, address=address))
    with peer_process([program("docker-registry"), "serve", configuration], folder, f"http://{address}/v2/"):
        yield f"http://{address}"

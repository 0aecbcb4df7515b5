"""Example files for operators, as the programs read them that they are for."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import pkgrepo
from tests.support.client_programs import absent
from tests.support.nodes import HAPROXY

NODES = Path(pkgrepo.__file__).parent / "examples" / "nodes"


def test_haproxy_takes_its_configuration(tmp_path: Path) -> None:
    if not Path(HAPROXY).exists():
        absent(f"there is no {HAPROXY}")
    text = (NODES / "haproxy.cfg").read_text().replace(" node1:", " 127.0.0.1:").replace(" node2:", " 127.0.0.1:")
    (tmp_path / "haproxy.cfg").write_text(text)
    result = subprocess.run(
        [HAPROXY, "-c", "-f", tmp_path / "haproxy.cfg"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_haproxy_starts_with_few_descriptors(tmp_path: Path) -> None:
    if not Path(HAPROXY).exists():
        absent(f"there is no {HAPROXY}")
    text = (NODES / "haproxy.cfg").read_text().replace(" node1:", " 127.0.0.1:").replace(" node2:", " 127.0.0.1:")
    name = f"pkgrepo-test-{os.getpid()}"
    (tmp_path / "haproxy.cfg").write_text(text.replace("bind :8080", f"bind abns@{name}"))
    lowered = ["prlimit", "--nofile=1024:1024"]
    if os.geteuid() == 0:  # root may raise its limit, and HAProxy does
        lowered += ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    with (
        (tmp_path / "haproxy.cfg").open() as configuration,
        subprocess.Popen(
            [*lowered, HAPROXY, "-db", "-f", "/dev/stdin"], stdin=configuration, stderr=subprocess.PIPE
        ) as started,
    ):
        address = b"\0" + name.encode().ljust(107, b"\0")  # HAProxy fills abstract names up
        while started.poll() is None:
            with socket.socket(socket.AF_UNIX) as line, suppress(ConnectionRefusedError):
                line.connect(address)
                break
        running = started.poll() is None
        started.terminate()
        _, said = started.communicate()
    assert running, said

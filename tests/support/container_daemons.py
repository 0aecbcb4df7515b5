"""dockerd and containerd for tests: without a network, with all they keep in a folder of their own."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.client_programs import client_environment, program
from tests.support.timeouts import TIMEOUT_S

CONTAINERD = """
version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = [
    "io.containerd.grpc.v1.cri",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
]
[grpc]
address = "{folder}/socket"
"""


@contextmanager
def dockerd() -> Iterator[str]:
    """The address of a fresh daemon, as ``DOCKER_HOST`` takes it; the test is skipped where none starts."""
    binary = program("dockerd")
    with tempfile.TemporaryDirectory(prefix="dk") as name:  # addresses of sockets have little room
        folder = Path(name)
        command = [
            binary,
            "--iptables=false",
            "--ip6tables=false",
            "--bridge=none",
            "--storage-driver=vfs",
            f"--data-root={folder}/data",
            f"--exec-root={folder}/exec",
            f"--pidfile={folder}/pid",
            f"--host=unix://{folder}/socket",
        ]
        with _daemon(command, folder, [program("docker"), "--host", f"unix://{folder}/socket", "version"]):
            yield f"unix://{folder}/socket"


@contextmanager
def containerd() -> Iterator[Path]:
    """The socket of a fresh containerd, as ``ctr --address`` takes it; the test is skipped where none starts."""
    binary = program("containerd")
    with tempfile.TemporaryDirectory(prefix="cd") as name:
        folder = Path(name)
        (folder / "config.toml").write_text(CONTAINERD.format(folder=folder))
        command = [binary, "--config", folder / "config.toml"]
        with _daemon(command, folder, [program("ctr"), "--address", folder / "socket", "version"]):
            yield folder / "socket"


@contextmanager
def _daemon(command: Sequence[str | Path], folder: Path, probe: Sequence[str | Path]) -> Iterator[None]:
    """A daemon from when its probe succeeds; what it says goes to a file."""
    environ = client_environment(folder / "home")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, env=environ, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        answers = _wait(
            lambda: process.poll() is not None,
            lambda: subprocess.run(probe, env=environ, capture_output=True, check=False).returncode == 0,
        )
        if not answers:
            last = (folder / "log").read_text(errors="replace").strip().rpartition("\n")[2]
            # Not for want of a program: a machine may forbid what the daemon needs, so that nobody can be asked for it.
            pytest.skip(f"{Path(command[0]).name} does not start here: {last}")
        yield
    finally:
        process.terminate()
        try:
            process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(ended: Callable[[], bool], there: Callable[[], bool]) -> bool:
    """Whether it is there before it has ended, or time is up."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until and not ended():
        if there():
            return True
        time.sleep(0.1)
    return False

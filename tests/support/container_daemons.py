"""Runs dockerd and containerd for tests, without a network, with their data in a temporary folder."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.client_programs import client_environment, program
from tests.support.container_clients import ContainerClients
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
    """Run a new dockerd; yields its address for ``DOCKER_HOST``. If it does not start, the test is skipped."""
    binary = program("dockerd")
    with tempfile.TemporaryDirectory(prefix="dk") as name:  # paths of Unix sockets have at most 107 bytes
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
    """Run a new containerd; yields its socket for ``ctr --address``. If it does not start, the test is skipped."""
    binary = program("containerd")
    with tempfile.TemporaryDirectory(prefix="cd") as name:
        folder = Path(name)
        (folder / "config.toml").write_text(CONTAINERD.format(folder=folder))
        command = [binary, "--config", folder / "config.toml"]
        with _daemon(command, folder, [program("ctr"), "--address", folder / "socket", "version"]):
            yield folder / "socket"


@contextmanager
def _daemon(command: Sequence[str | Path], folder: Path, probe: Sequence[str | Path]) -> Iterator[None]:
    """Run a daemon whose output goes to a file; enter the context when the probe succeeds."""
    environ = client_environment(folder / "home")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, env=environ, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        ready = _wait(
            lambda: process.poll() is not None,
            lambda: subprocess.run(probe, env=environ, capture_output=True, check=False).returncode == 0,
        )
        if not ready:
            last = (folder / "log").read_text(errors="replace").strip().rpartition("\n")[2]
            # Never a failure: some machines forbid what the daemon needs, and bin/test cannot change that.
            pytest.skip(f"{Path(command[0]).name} does not start here: {last}")
        yield
    finally:
        process.terminate()
        try:
            process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(ended: Callable[[], bool], ready: Callable[[], bool]) -> bool:
    """Poll until ``ready``; returns False when ``ended`` or after the timeout."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until and not ended():
        if ready():
            return True
        time.sleep(0.1)
    return False


class Docker(ContainerClients):
    """Runs docker with one daemon and its own configuration."""

    def __init__(self, folder: Path, host: str, daemon: str) -> None:
        super().__init__(folder, host)
        self.environ["DOCKER_HOST"] = daemon

    def __call__(self, *arguments: str | Path, status: int | None = 0) -> str:
        return self.call(program("docker"), *arguments, status=status)

    def make(self, image: str, content: str) -> str:
        """Make an image with one file in the daemon. Returns its full name."""
        archive = self.folder / f"{content}.tar"
        with tarfile.open(archive, "w") as tar:
            member = tarfile.TarInfo("content")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content.encode()))
        self("import", archive, f"{self.host}/{image}")
        return f"{self.host}/{image}"

    def digest(self, image: str) -> str:
        """Return the digest that the daemon has recorded for an image of the server."""
        return self("image", "inspect", "--format", "{{index .RepoDigests 0}}", image).strip().partition("@")[2]

    def identity(self, image: str) -> str:
        return self("image", "inspect", "--format", "{{.Id}}", image).strip()

"""Debian in a folder, booted with systemd by systemd-nspawn."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def booted(root: Path) -> Iterator[Sequence[object]]:
    """Boot the system in a folder, with the network of this machine; yields the beginning of a command there."""
    options = ("--quiet", "--boot", "--keep-unit", "--register=no", "--console=read-only")
    with (root.parent / "console").open("wb") as log:
        process = subprocess.Popen(
            ["systemd-nspawn", *options, "-D", root], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: children.read_text().split(), "systemd-nspawn starts nothing")
        (first,) = children.read_text().split()
        inside = (
            "nsenter", f"--target={first}", "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd",
            "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
        )  # fmt: skip
        running = (*inside, "systemctl", "is-system-running")
        until(lambda: _output(running) in {"running\n", "degraded\n"}, "systemd does not start")
        yield inside
        _output((*inside, "systemctl", "poweroff"))
        process.wait(timeout=120)
    finally:
        process.kill()
        process.wait()


def until(condition: Callable[[], object], message: str) -> None:
    """Wait until this is true, for up to two minutes."""
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        if condition():
            return
        time.sleep(0.2)
    raise AssertionError(message)


def _output(command: Sequence[object]) -> str:
    return subprocess.run([str(each) for each in command], check=False, capture_output=True, text=True).stdout

"""A network namespace, as if it were another machine, whose connections to this one can be cut."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import pytest

PROGRAMS: Final = ("ip", "iptables", "nsenter")
SILENCE, LOST, RESET = "silence", "no answers", "reset"
CUTS: Final = (SILENCE, LOST, RESET)


class FarMachine:
    """
    The other end of a cable. ``near`` is the address of this machine as that one sees it, ``far`` is its own.

    Commands that begin with ``launcher`` run there.
    """

    def __init__(self, name: str, near: str, far: str) -> None:
        self.near = near
        self.far = far
        self.launcher = ["nsenter", f"--net=/run/netns/{name}", "--"]

    def cut(self, port: int, how: str) -> None:
        """
        Cut its connections to a port of this machine, those that it has and those that it makes.

        With ``SILENCE`` nothing arrives at either side, with ``LOST`` only what it sends; with ``RESET`` it is told
        that there is no such port.
        """
        there, back = [self._rule(each, port) for each in ("OUTPUT", "INPUT")]
        if how == RESET:
            self._run(*there, "REJECT", "--reject-with", "tcp-reset")
            return
        self._run(*back, "DROP")
        if how == SILENCE:
            self._run(*there, "DROP")

    def heal(self) -> None:
        """End all cuts."""
        for chain in ("INPUT", "OUTPUT"):
            self._run("iptables", "-w", "-F", chain)

    def _rule(self, chain: str, port: int) -> list[str]:
        peer, end = ("-d", "--dport") if chain == "OUTPUT" else ("-s", "--sport")
        return ["iptables", "-w", "-A", chain, peer, self.near, "-p", "tcp", end, str(port), "-j"]

    def _run(self, *command: str) -> None:
        subprocess.run([*self.launcher, *command], check=True, capture_output=True)


@contextmanager
def far_machine() -> Iterator[FarMachine]:
    """Make one; the test is skipped where that is impossible."""
    missing = [each for each in PROGRAMS if shutil.which(each) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"network namespaces need root and {' and '.join(PROGRAMS)}")
    name, number = f"pkgrepo-{os.getpid()}", os.getpid() % 16_384
    # Of the block for measurements between networks, RFC 2544, a network of four addresses for each process.
    base = (198 << 24) + (18 << 16) + 4 * number
    near, far = [".".join(str((base + each) >> shift & 255) for shift in (24, 16, 8, 0)) for each in (1, 2)]
    here, there = f"pk{os.getpid()}a", f"pk{os.getpid()}b"
    inside = ["ip", "-n", name]
    steps: Sequence[Sequence[str]] = (
        ["ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", name],
        ["ip", "address", "add", f"{near}/30", "dev", here],
        ["ip", "link", "set", here, "up"],
        [*inside, "address", "add", f"{far}/30", "dev", there],
        [*inside, "link", "set", "lo", "up"],
        [*inside, "link", "set", there, "up"],
    )
    _try(["ip", "netns", "add", name])
    try:
        for each in steps:
            _try(each)
        yield FarMachine(name, near, far)
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False)
        subprocess.run(["ip", "link", "delete", here], check=False, capture_output=True)


def _try(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine makes no network namespaces: {done.stderr.strip()}")

"""Requests to a server whose workers are replaced all the time, of which none may fail."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from attrs import frozen

from .clients.load import percentile
from .contestants.workers import PkgrepoMixed
from .soak import SAMPLE_S, MixedLoad, Tally

_RUN_S: Final = 4 * SAMPLE_S  # after which the requests are counted


class PkgrepoAutomatic(PkgrepoMixed):
    """With a worker on each processor."""

    name = "pkgrepo-automatic"

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "PKGREPO_SERVER__WORKERS": "auto"}


@frozen
class Restarts:
    """The result of a run: what the clients saw, how often a replacement was asked for, and how many workers ended."""

    tally: Tally
    asked: int
    replaced: int

    @property
    def is_met(self) -> bool:
        """Whether workers were replaced and no request failed."""
        return self.replaced > 0 and not self.tally.errors


def run_restarts(requests: int, scratch: Path, say: Callable[[str], None]) -> Restarts:
    """
    Load a server with mixed requests, of which none is tried again, and send it SIGHUP every few seconds.

    :raises Unavailable: it cannot be started; :raises LoadFailed: what is read later could not be published
    """
    server, tally, asked, seen = PkgrepoAutomatic(scratch / "restarts"), Tally(), 0, set[int]()

    def replace(_at_s: float) -> None:
        nonlocal asked
        asked += 1
        seen.update(server.tree.pids())
        os.kill(server.tree.roots[0], signal.SIGHUP)

    server.start()
    try:
        load = MixedLoad(server)
        while len(tally.took_ms) + len(tally.errors) < requests:
            part = load.run(_RUN_S, 0.0, replace)
            tally.took_ms += part.took_ms
            tally.errors += part.errors
            say(f"restarts: {len(tally.took_ms):,} requests, {len(tally.errors)} failed")
        return Restarts(tally, asked, len(seen - set(server.tree.pids())))
    finally:
        server.discard()


def describe(restarts: Restarts) -> str:
    """The result as text."""
    tally = restarts.tally
    lines = [
        f"{len(tally.took_ms) + len(tally.errors):,} requests, p99 {percentile(tally.took_ms, 99):.0f} ms; "
        f"{restarts.asked} reloads, {restarts.replaced} workers replaced",
        f"- {len(tally.errors)} failed: {'met' if restarts.is_met else 'MISSED'}",
        *(f"  {error}" for error in tally.errors[:5]),
    ]
    return "\n".join(lines) + "\n"

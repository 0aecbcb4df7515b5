"""Uploads to a server that is killed at random moments: nothing that was acknowledged is lost."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.support.data_folder import DataFolder, pkgrepo, wait_for
from tests.support.server_process import ServerProcess
from tests.support.uploader import Uploader

KILLS = 3


def survive_kills(
    run: Callable[[], ServerProcess],
    uploader: Uploader,
    check: Callable[[ServerProcess], set[Any]],
    count: int,
    data: DataFolder,
    rng: random.Random,
    seed: int,
) -> set[Any]:
    """
    Kill a server several times while it takes ``count`` uploads, and then let it take the rest.

    ``check`` is called with each server that comes after; it returns what that serves, and fails if it serves anything
    by halves. Returns what is served in the end, which is all that was acknowledged.
    """
    for _ in range(KILLS):
        server = run()
        uploader.run(server.url, rng.randrange(5, count // (KILLS + 1)), server.kill)
        assert server.kill() == -9
        assert data.damaged() == [], seed
        server = run()
        check(server)
        server.stop()
    server = run()
    uploader.run(server.url, count, lambda: None)
    served = check(server)
    assert uploader.acknowledged == served, seed
    wait_for(data.is_tidy, server)
    wait_for(data.is_in_step, server)
    assert server.stop() in (0, -15)
    checked = pkgrepo(data, "verify")
    assert (checked.returncode, checked.stderr.count("differs")) == (0, 0), (seed, checked.stderr)
    return served

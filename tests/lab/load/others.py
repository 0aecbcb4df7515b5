"""
A client that reads small things, one after the other, in a process of its own: what a load takes is not felt in it.

The first line of the standard input is JSON: ``url``, ``auth`` and ``paths``. It reads until the input ends, and writes
a line when it begins and, in the end, one with ``took_ms``, a list for each path, and ``failed``.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Final

from tests.support.http_client import HttpClient

PAUSE_S: Final = 0.02  # between the requests


def main() -> None:
    """Read until the standard input ends."""
    given = json.loads(sys.stdin.readline())
    client, paths = HttpClient(given["url"], tuple(given["auth"])), given["paths"]
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    took_ms: list[list[float]] = [[] for _ in paths]
    failed: list[str] = []
    print("begun", flush=True)
    number = 0
    while not ended.is_set() or number < len(paths):
        at = number % len(paths)
        path = paths[at]
        began = time.perf_counter()
        try:
            reply = client.get(path)
        except OSError as error:
            failed.append(f"{path}: {error}")
        else:
            took_ms[at].append((time.perf_counter() - began) * 1e3)
            if reply.status != 200:
                failed.append(f"{path}: {reply.status}")
        number += 1
        ended.wait(PAUSE_S)
    print(json.dumps({"took_ms": took_ms, "failed": failed}))


if __name__ == "__main__":
    main()

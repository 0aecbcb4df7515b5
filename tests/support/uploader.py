"""Clients that upload continuously, and record which uploads were acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor

import requests
from attrs import frozen

from tests.support.python_index import PASSWORD, USER
from tests.support.timeouts import TIMEOUT_S

THREADS = 6


@frozen
class Upload:
    """
    One request. ``key`` identifies it; ``repeated`` are the statuses of an upload that was already published.

    ``kind`` is its media type, if it says one.
    """

    key: Hashable
    path: str
    body: bytes
    repeated: tuple[int, ...] = ()
    method: str = "PUT"
    kind: str = ""


class Uploader:
    """Uploads from several threads, and repeats each upload until it is acknowledged or the server is gone."""

    def __init__(self, uploads: Iterable[Upload]) -> None:
        self.waiting = list(uploads)
        self.acknowledged: set[Hashable] = set()
        self._cut_off: set[Hashable] = set()
        self._lock = threading.Lock()

    def run(self, url: str, enough: int, stop: Callable[[], object]) -> None:
        """Upload; call C{stop} when C{enough} more uploads were acknowledged."""
        target = len(self.acknowledged) + enough
        stopped = threading.Event()

        def work() -> None:
            session = requests.Session()
            session.auth = (USER, PASSWORD)
            while True:
                with self._lock:
                    if not self.waiting:
                        return
                    upload = self.waiting.pop()
                headers = {"Content-Type": upload.kind} if upload.kind else {}
                try:
                    answer = session.request(
                        upload.method, url + upload.path, data=upload.body, headers=headers, timeout=TIMEOUT_S
                    )
                except requests.RequestException:
                    with self._lock:
                        self.waiting.append(upload)
                        self._cut_off.add(upload.key)
                    return
                # The server may have been killed between the commit and the answer.
                repeated = upload.repeated if upload.key in self._cut_off else ()
                assert answer.status_code in (200, 201, *repeated), answer.text
                with self._lock:
                    self.acknowledged.add(upload.key)
                    if len(self.acknowledged) >= target and not stopped.is_set():
                        stopped.set()
                        stop()

        with ThreadPoolExecutor(THREADS) as pool:
            for done in [pool.submit(work) for _ in range(THREADS)]:
                done.result()

"""Proxies whose upstreams cut bodies, send wrong ones, fail and are silent: what a client gets whole is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

import requests
from attrs import define, field

from tests.lab.faults.clients import Idle
from tests.lab.faults.ledger import sha256_of
from tests.support.first_publishes import Publisher
from tests.support.upstreams import faults
from tests.support.upstreams.messages import Answer, Fault, Step
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream
from tests.support.upstreams.server import ScriptedUpstream

from .task import Task, told

SIZE: Final = 60_000  # bytes of padding of a file
STEPS: Final[Mapping[str, Step]] = {
    "cut": Fault(cut_at=SIZE // 2),
    "reset": Fault(cut_at=SIZE // 2, reset=True),
    "closed": faults.NO_ANSWER,
    "unfinished": faults.CHUNKED_WITHOUT_END,
    "corrupted": faults.corrupted,
    "short": faults.truncated_by(10, announce=False),
    "error": faults.failing(500),
    "unavailable": faults.failing(503, "1"),
    "html": faults.HTML,
    "silent": faults.STALL_BEFORE_HEAD,
    "slow": Fault(latency_s=0.2),
    "gone": Answer(404, b"not found"),
}
# What a proxy says of an upstream that fails, and of one that has not what it listed.
FAILED: Final = (404, 424, 429, 502, 503, 504)


@define
class Proxied:
    """
    A file of an upstream by its address in the proxy.

    ``served`` once a client has got all of it, ``kept`` once it was served while the upstream failed: what a client
    gets while it is fetched is recorded a little later.
    """

    upstream: ScriptedUpstream
    there: str
    path: str
    sha256: str
    served: bool = False
    kept: bool = False


@define
class Proxying(Task):
    """A file that is kept is served from then on, whatever the upstream does."""

    name: ClassVar = "misbehaving upstreams"
    near: ClassVar = True
    steps: ClassVar = {"publish": 2, "read": 8, "read_kept": 3}
    threads: ClassVar = 2

    npm: NpmUpstream = field(factory=NpmUpstream, init=False)
    python: PythonUpstream = field(factory=PythonUpstream, init=False)
    raw: ScriptedUpstream = field(factory=ScriptedUpstream, init=False)
    files: list[Proxied] = field(factory=list, init=False)

    @staticmethod
    def settings(folder: object) -> str:
        return 'proxy.idle_timeout = "2s"\nproxy.connect_timeout = "2s"\nproxy.document_timeout = "4s"\n'

    def prepare(self) -> None:
        api = self.api()
        for each in (self.npm, self.python, self.raw):
            each.start()
        urls = {"npm": self.npm.url, "python": self.python.simple, "raw": self.raw.url}
        for format_, url in urls.items():
            config = {"type": "Proxy", "proxy": {"routes": [{"url": url}]}, "cache_ttl": "1s"}
            value = {"name": f"odd-{format_}", "storage": "main", "format": format_, "visibility": "public"}
            api.ask("POST", "api/repository", json={**value, "config": config})

    def close(self) -> None:
        for each in (self.npm, self.python, self.raw):
            each.stop()

    def publish(self) -> None:
        """Publish a file there."""
        number, kind = self.next(), self.rng.choice(("npm", "python", "raw"))
        base = f"repositories/main/odd-{kind}"
        if kind == "npm":
            name, version = f"odd{number % 4}", f"1.0.{number}"
            data, there = self.npm.add(name, version, pad=SIZE), self.npm.tarball_path(name, version)
            found = Proxied(self.npm, there, f"{base}/{name}/-/{name}-{version}.tgz", sha256_of(data))
        elif kind == "python":
            file, data = self.python.add(f"odd{number % 4}", f"1.0.{number}", pad=SIZE)
            there = self.python.file_path(file)
            found = Proxied(self.python, there, f"{base}/packages/odd{number % 4}/1.0.{number}/{file}", sha256_of(data))
        else:
            # Whose version is in its folder and its name never changes; others are asked for again.
            data, there = self.rng.randbytes(SIZE), f"/box/1.{number}/box-1.{number}.bin"
            self.raw.serve(there, data)
            found = Proxied(self.raw, there, f"{base}{there}", sha256_of(data))
        with self.lock:
            self.files.append(found)

    def read(self) -> None:
        """Read a file that may not be kept yet, from an upstream that misbehaves or not."""
        if not self.files:
            raise Idle
        each = self.rng.choice(self.files[-12:])
        if self.rng.random() < 0.6:
            name = self.rng.choice([*STEPS])
            # A wrong file without a digest to compare it with is a right one.
            if each.upstream is not self.raw or name not in ("corrupted", "short", "html"):
                each.upstream.misbehave(each.there, STEPS[name])
        self._read(self.api(), each)

    def read_kept(self) -> None:
        """Read one that is kept."""
        kept = [each for each in self.files if each.kept]
        if not kept:
            raise Idle
        self._read(self.api(), self.rng.choice(kept))

    def check(self) -> Iterator[str]:
        served = [each for each in self.files if each.served]
        return self._check(self.rng.sample(served, min(10, len(served))))

    def finish(self) -> Iterator[str]:
        return self._check([each for each in self.files if each.served])

    def _check(self, files: list[Proxied]) -> Iterator[str]:
        for each in files:
            each.upstream.misbehave(each.there, faults.failing(500), repeat=True)  # what is kept needs no upstream
            try:
                each.kept = self._read(self.api(), each)
            except AssertionError as error:
                yield f"{told(error)}; it was kept before"
            each.upstream.misbehave(each.there)

    def _read(self, api: Publisher, each: Proxied) -> bool:
        """Whether a client gets all of a file. :raises AssertionError: with other bytes, or not although it is kept"""
        was_kept = each.kept
        try:
            answer = api.send("GET", each.path)
        except requests.ConnectionError:
            api.send("GET", "healthz")  # whose error says that the server is away, and not the upstream alone
            # Or the server died, and the next one is there already: a status from 500 on is excused once a fault began.
            assert not was_kept, f"GET {each.path}: 500 cut off, and it is kept"
            return False
        if answer.status_code == 200:
            assert sha256_of(answer.content) == each.sha256, f"GET {each.path}: served whole with other bytes"
            each.served = True
            return True
        what = f"GET {each.path}: {answer.status_code} {answer.text[:200]}"
        assert not was_kept, what
        assert answer.status_code in FAILED, what
        return False

"""
The loads, by name. Each is given a place and a size, prints what it measured, and returns what went wrong.

Wrong are refusals and other bytes than were published, and never a time.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from attrs import Factory, evolve, frozen

from tests.bench.measure import MIB
from tests.lab.faults.results import machine, today
from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.http_client import HttpClient, basic
from tests.support.images import OCI_IMAGE, Image, describe, digest_of, make_image
from tests.support.inprocess_server import PASSWORD
from tests.support.server_process import ROOT, ServerProcess

from .measured import Felt, Measured
from .watching import IDLE_S, Others, Server

AUTH: Final = ("admin", PASSWORD)
LARGE: Final = 8 * 1024 * 1024  # bytes of the file that slow readers read
TICK_S: Final = 0.5  # after which a slow connection moves one piece
PIECE: Final = 512  # bytes
PARTS: Final = 50  # of the slow connections, which move at a time
SLOW_S: Final = 10.0
HUNDRED: Final = 100
IMAGES: Final = "/v2/main/images/app"

Say = Callable[[str], None]


@frozen
class Place:
    """
    A running server with a repository of each format; ``start`` starts it again after it was stopped.

    The load is of ``size`` of what ``name`` says; ``found`` is what was measured. Others are measured alone for
    ``idle_s`` before it.
    """

    server: ServerProcess
    start: Callable[[], ServerProcess]
    folder: Path
    say: Say
    name: str
    size: int
    idle_s: float = IDLE_S
    found: list[Measured] = Factory(list)

    @property
    def client(self) -> HttpClient:
        """Requests of the admin."""
        return HttpClient(self.server.url, AUTH)

    def others(self) -> Others:
        """Clients of something else than the load."""
        publisher = Publisher(self.server.url, AUTH)
        with suppress(AssertionError):  # it is there already
            publisher.publish("python", "other", "1.0")
        return Others(
            self.server.url, AUTH, ["/repositories/main/py/simple/other/", "/api/search/packages?q=other&limit=1"]
        )

    def measured(self, load: Callable[[], None], begin: Callable[[], None] = lambda: None, of: str = "") -> list[str]:
        """Run a load, or the part ``of`` it, and note what others felt, but for its ``begin``; their failures."""
        others = self.others()
        for _ in range(2):  # the first time each worker loads what it needs
            with others.reading():
                time.sleep(self.idle_s)
        idle_ms = others.p99_ms
        watched = Server.of(self.server.pid)
        before = watched.describe()
        begin()
        began = time.monotonic()
        with others.reading():
            load()
        took_s = time.monotonic() - began
        reads, searches = map(Felt, others.p99_ms, idle_ms)
        self.say(f"  {took_s:.1f} s; p99 of others' reads {reads}, of their searches {searches}")
        watched.tree.settle()
        self.say(f"  before: {before}\n  after:  {watched.describe()}")
        name = f"{self.name}, {of}" if of else self.name
        peak_mib = watched.tree.peak_rss() / MIB
        self.found.append(Measured(name, f"{self.size:,}", today(), machine(), took_s, reads, searches, peak_mib))
        return [f"others: {each}" for each in others.failed[:5]]

    def note(self, text: str) -> None:
        """Say what was seen in the last load."""
        self.say(f"  {text}")
        self.found[-1].notes.append(text)


def slow(place: Place, count: int) -> list[str]:
    """Half of the connections send an upload byte by byte, half read a large file as slowly, for ten seconds."""
    path = "/repositories/main/files/large/1.0/large.bin"
    place.client.put(path, bytes(LARGE))
    parts = urlsplit(place.server.url)
    address = (parts.hostname or "", parts.port or 80)
    head = "".join(f"{name}: {value}\r\n" for name, value in {"Host": parts.netloc, **basic(AUTH)}.items())
    moved = Counter[str]()

    senders, readers = list[socket.socket](), list[socket.socket]()
    watched = Server.of(place.server.pid)

    def begin() -> None:
        began = time.monotonic()
        for number in range(count):
            connection = socket.create_connection(address, 60)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            if number % 2:
                readers.append(connection)
                connection.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
            else:
                senders.append(connection)
                upload = f"/repositories/main/files/slow/{number}/slow.bin"
                connection.sendall(f"PUT {upload} HTTP/1.1\r\n{head}Content-Length: 1000000\r\n\r\n".encode())
        for connection in readers:
            connection.recv(1)  # its response has begun
        watched.tree.settle()
        place.say(f"  {count} connections after {time.monotonic() - began:.1f} s: {watched.describe()}")

    def load() -> None:
        ends_at = time.monotonic() + (SLOW_S if count > HUNDRED else 1.0)
        while time.monotonic() < ends_at:
            for number in range(PARTS):  # one after the other, as slow clients know nothing of each other
                for connection in readers[number::PARTS]:
                    connection.setblocking(False)
                    with suppress(BlockingIOError):
                        moved["read"] += len(connection.recv(PIECE))
                for connection in senders[number::PARTS]:
                    moved["sent"] += connection.send(b"x")
                time.sleep(TICK_S / PARTS)
        place.say(f"  while they move: {watched.describe()}")
        for connection in (*readers, *senders):
            connection.close()

    wrong = place.measured(load, begin)
    place.note(f"bytes that moved: {moved['sent']:,} sent, {moved['read']:,} read")
    return wrong if moved["read"] and moved["sent"] else [*wrong, f"slow connections stood still: {dict(moved)}"]


def logins(place: Place, count: int) -> list[str]:
    """Wrong passwords of many names, eight at a time; those who are logged in notice nothing."""
    statuses = Counter[int]()

    def login(number: int) -> int:
        return HttpClient(place.server.url, (f"nobody{number % 50}", f"wrong{number}")).get("/api/repository").status

    def load() -> None:
        with ThreadPoolExecutor(8) as pool:
            statuses.update(pool.map(login, range(count)))

    wrong = place.measured(load)
    place.note(f"answers: {', '.join(f'{count} of {status}' for status, count in sorted(statuses.items()))}")
    return wrong + [f"a wrong login was answered with {status}" for status in statuses if status not in (401, 429)]


def _push(connection: http.client.HTTPConnection, path: str, body: bytes, media_type: str) -> None:
    fields = {**basic(AUTH), "Content-Type": media_type, "Content-Length": str(len(body))}
    connection.request("PUT", path, body, fields)
    reply = connection.getresponse()
    text = reply.read()
    if reply.status not in (200, 201):
        raise AssertionError(f"PUT {path}: {reply.status} {text[:300]!r}")


def _image(place: Place) -> Image:
    image, client = make_image("load"), place.client
    for blob in image.blobs:
        started = client.post(f"{IMAGES}/blobs/uploads/")
        where = started.headers["location"].replace(place.server.url, "")
        client.put(f"{where}{'&' if '?' in where else '?'}digest={digest_of(blob)}", bytes(blob))
    return image


def _growing(place: Place, count: int, steps: Iterator[Callable[[], object]], of: str = "") -> list[str]:
    """Run many like steps one after the other; print the processor time of the first and the last hundred."""
    watched = Server.of(place.server.pid)
    part = min(HUNDRED, count // 3)
    marks = {0, part, count - part, count}
    used: list[float] = []

    def load() -> None:
        for number in range(count + 1):
            if number in marks:
                used.append(watched.settled_cpu_s())
            if number < count:
                next(steps)()

    wrong = place.measured(load, of=of)
    first, _, last = (after - before for before, after in pairwise(used))
    grown = place.found[-1].grown = last / first if first else 0.0
    place.say(f"  the server's CPU: first {part} {first:.2f} s, last {part} {last:.2f} s of {count}: {grown:.1f}x")
    return wrong


def tags(place: Place, count: int) -> list[str]:
    """Tags of one image repository, all of one manifest; then the whole list is read in pages."""
    image = _image(place)
    connection = _connect(place)
    steps = (
        partial(_push, connection, f"{IMAGES}/manifests/t{number:06}", image.manifest, OCI_IMAGE)
        for number in range(count)
    )
    wrong = _growing(place, count, steps)
    began, found, path = time.monotonic(), 0, f"{IMAGES}/tags/list?n=1000"
    while path:
        reply = place.client.get(path)
        found += len(reply.json["tags"] or [])
        path = reply.headers.get("link", "").partition("<")[2].partition(">")[0].replace(place.server.url, "")
    place.note(f"{found:,} tags are listed in {time.monotonic() - began:.2f} s, in pages of 1000")
    return wrong if found == count else [*wrong, f"{found} tags are listed, and {count} were pushed"]


def referrers(place: Place, count: int) -> list[str]:
    """Manifests about one image; then the list of them is read in pages."""
    image = _image(place)
    _push(connection := _connect(place), f"{IMAGES}/manifests/subject", image.manifest, OCI_IMAGE)
    empty = b"{}"
    started = place.client.post(f"{IMAGES}/blobs/uploads/")
    where = started.headers["location"].replace(place.server.url, "")
    place.client.put(f"{where}{'&' if '?' in where else '?'}digest={digest_of(empty)}", empty)

    def push(number: int) -> None:
        value = {
            "schemaVersion": 2,
            "mediaType": OCI_IMAGE,
            "artifactType": "application/vnd.example.note",
            "config": describe(empty, "application/vnd.oci.empty.v1+json"),
            "layers": [describe(empty, "application/vnd.oci.empty.v1+json")],
            "subject": image.descriptor,
            "annotations": {"number": str(number)},
        }
        body = json.dumps(value).encode()
        _push(connection, f"{IMAGES}/manifests/{digest_of(body)}", body, OCI_IMAGE)

    wrong = _growing(place, count, (partial(push, number) for number in range(count)))
    began, found, pages, path = time.monotonic(), 0, 0, f"{IMAGES}/referrers/{image.digest}"
    while path:
        reply = place.client.get(path)
        found, pages = found + len(reply.json["manifests"]), pages + 1
        path = reply.headers.get("link", "").partition("<")[2].partition(">")[0].replace(place.server.url, "")
    place.note(f"{found:,} referrers are listed in {time.monotonic() - began:.2f} s, in {pages} pages")
    return wrong if found == count else [*wrong, f"{found} referrers are listed, and {count} were pushed"]


def versions(place: Place, count: int) -> list[str]:
    """Versions of one package of each format, published one by one."""
    wrong: list[str] = []
    for format_ in REPOSITORIES:
        if format_ == "docker":
            continue  # see tags
        place.say(f"  {format_}:")
        publish = partial(Publisher(place.server.url, AUTH).publish, format_, "grown")
        steps = [partial(publish, f"1.{number}.0") for number in range(count)]
        wrong += [f"{format_}: {each}" for each in _growing(place, count, iter(steps), format_)]
    return wrong


def search(place: Place, count: int) -> list[str]:
    """Packages that are written into the catalog while the server is down; then words and parts of names are sought."""
    place.server.stop()
    began = time.monotonic()
    command = [sys.executable, "-m", "tests.bench.fill", str(place.folder / "data"), "main/py", str(count)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    place.say(f"  {count} packages are written in {time.monotonic() - began:.0f} s")
    place = evolve(place, server=place.start())
    began = time.monotonic()
    while place.client.get("/api/search/packages?q=a&limit=1").json["behind"]:
        time.sleep(TICK_S)
    known_s = time.monotonic() - began
    place.say(f"  searches know of all {known_s:.0f} s after the start")
    took: dict[str, float] = {}
    found: dict[str, int] = {}

    def load() -> None:
        for query in ("a", "bench", "package", "no-such-name", "0", f"{count - 1}", "demo 1"):
            started = time.perf_counter()
            reply = place.client.get(f"/api/search/packages?q={query.replace(' ', '%20')}&limit=50")
            took[query] = (time.perf_counter() - started) * 1e3
            found[query] = len(reply.json["items"]) if reply.status == 200 else -reply.status

    wrong = place.measured(load)
    place.note(f"searches know of all {known_s:.0f} s after the start")
    place.note(", ".join(f"`{query}` finds {found[query]} in {took[query]:.0f} ms" for query in took))
    return wrong + [f"a search was answered with {-number}" for number in found.values() if number < 0]


def _connect(place: Place) -> http.client.HTTPConnection:
    parts = urlsplit(place.server.url)
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)


@frozen
class Load:
    """A load: what it is a number of, its size, and that of the test."""

    run: Callable[[Place, int], list[str]]
    of: str
    size: int
    small: int


LOADS: Final[Mapping[str, Load]] = {
    "slow": Load(slow, "slow connections", 2000, 60),
    "logins": Load(logins, "wrong logins", 1000, 30),
    "tags": Load(tags, "tags of an image", 100_000, 250),
    "referrers": Load(referrers, "referrers of an image", 100_000, 250),
    "versions": Load(versions, "versions of a package", 10_000, 20),
    "search": Load(search, "packages that are searched", 1_000_000, 500),
}

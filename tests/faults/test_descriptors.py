"""A server without free file descriptors answers 503 in each client's error format, and works again afterwards."""

from __future__ import annotations

import json
import os
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

import pytest
from attrs import frozen

from pkgrepo.failure_log import LOG_EVERY_S
from tests.support.configurations import MOVING, hosted
from tests.support.container_clients import ADMIN, ok, push_image
from tests.support.format_cases.workload import REPEATED, make_releases, repositories
from tests.support.http_client import HttpClient, Reply, read_reply
from tests.support.images import OCI_IMAGE, digest_of, make_image
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.python_packages import make_wheel
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.faults

REPOSITORIES = repositories() + hosted("python", "py") + hosted("npm", "node") + hosted("docker", images=MOVING)

FREE = range(5)  # numbers of free descriptors, so that requests fail at their first, second, ... file
PAD = 200_000  # bytes; too large for the caches in memory
BIG, COLD = make_wheel("big", "1.0", pad=PAD), make_wheel("cold", "1.0", pad=PAD)
SMALL = make_wheel("small", "1.0")
IMAGE = make_image("first")
RELEASES = make_releases(1, ["demo"])


@frozen
class Probe:
    """
    A request that may open files.

    ``message`` is the path of the message in a JSON body; without one it is in the status line, and with None in either
    of that and the body.
    """

    method: str
    path: str
    message: tuple[str | int, ...] | None = ()
    body: bytes = b""
    media_type: str = "application/octet-stream"


def probes(round_: int) -> list[Probe]:
    """Return reads of published files, and writes of new ones, whose names differ in each round."""
    py, node, image = "/repositories/main/py", "/repositories/main/node", "/v2/main/images/app"
    errors, error = ("errors", 0, "message"), ("error",)
    wheels = [make_wheel(f"new{round_}-{size}", "1.0", pad=size) for size in (0, PAD)]
    npm = [(f"new{round_}-{size}", make_tarball(f"new{round_}-{size}", "1.0.0", pad=size)) for size in (0, PAD)]
    pushed = make_image(f"round {round_}")
    layer = f"/blobs/{digest_of(IMAGE.blobs[1])}"
    return [
        *[Probe("GET", f"{py}/packages/{name}") for name, _ in (BIG, COLD, SMALL)],
        Probe("GET", f"{py}/simple/big/"),
        Probe("GET", f"{node}/demo", error),
        Probe("GET", f"{node}/demo/-/demo-1.0.0.tgz", error),
        Probe("GET", f"{image}/manifests/v1", errors),
        Probe("GET", f"{image}{layer}", errors),
        Probe("GET", "/api/repository/main%2Fpy/packages", ("detail",)),
        Probe("GET", "/api/audit", ("detail",)),
        Probe("POST", "/api/storage", ("detail",), json.dumps({"name": f"new{round_}", "type": "Local"}).encode()),
        *[Probe("PUT", f"{py}/{name.partition('-')[0]}/1.0/{name}", (), data) for name, data in wheels],
        *[
            Probe("PUT", f"{node}/{name}", error, make_publish(name, "1.0.0", tarball=tarball), "application/json")
            for name, tarball in npm
        ],
        *[Probe("POST", f"{image}/blobs/uploads/?digest={digest_of(b)}", errors, b) for b in (b"x", pushed.blobs[1])],
        Probe("PUT", f"{image}/manifests/v{round_ + 2}", errors, IMAGE.manifest, OCI_IMAGE),
        *[
            Probe("GET", f"/repositories/main/{each.case.format}{path}", None)
            for each in RELEASES
            for path in (each.case.document_of(each.name), each.case.file_of(each.name, each.version))
        ],
        *[
            Probe(each.method, each.path, None, each.body, each.kind)
            for release in make_releases(1, [f"new{round_}"])
            for each in release.uploads
        ],
    ]


class DescriptorLimit:
    """Limits a server's free descriptors by idle connections; ``ask`` uses connections that were opened before."""

    def __init__(self, process: ServerProcess, wire: HttpClient, connections: int) -> None:
        self._pid, self._wire = process.pid, wire
        self._limits = resource.prlimit(self._pid, resource.RLIMIT_NOFILE)
        self._ready = [self._connect() for _ in range(connections)]
        self._used: list[socket.socket] = []

    def leave(self, free: int) -> None:
        """Leave the server this number of free descriptors."""
        resource.prlimit(self._pid, resource.RLIMIT_NOFILE, self._limits)
        self._limit(max(map(int, os.listdir(f"/proc/{self._pid}/fd"))) + 1)
        with suppress(OSError):  # connections take the unused numbers below the highest one
            while True:
                self._used.append(self._connect())
        self._limit(max(map(int, os.listdir(f"/proc/{self._pid}/fd"))) + 1 + free)

    def ask(self, probe: Probe) -> Reply:
        connection = self._ready.pop()
        self._used.append(connection)
        fields = {"Content_Length": str(len(probe.body)), "Content_Type": probe.media_type}
        connection.sendall(self._wire.head_lines(probe.method, probe.path, **fields) + probe.body)
        return read_reply(connection, probe.method)

    def end(self) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_NOFILE, self._limits)
        for each in (*self._ready, *self._used):
            each.close()

    def _limit(self, count: int) -> None:
        resource.prlimit(self._pid, resource.RLIMIT_NOFILE, (count, self._limits[1]))

    def _connect(self) -> socket.socket:
        connection = self._wire.connect()
        try:
            connection.sendall(self._wire.head_lines("GET", "/healthz"))
            assert read_reply(connection, "GET").status == 200
        except BaseException:
            connection.close()
            raise
        return connection


@pytest.fixture
def server(run: Callable[[], ServerProcess]) -> ServerProcess:
    return run()


@pytest.mark.one_process("the limit is that of one process")
def test_requests_without_a_free_descriptor_get_503_and_the_server_recovers(server: ServerProcess) -> None:
    wire = HttpClient(server.url, ADMIN)
    for name, data in (BIG, COLD, SMALL):
        ok(wire.put(f"/repositories/main/py/{name.partition('-')[0]}/1.0/{name}", data))
    demo = make_publish("demo", "1.0.0", tarball=make_tarball("demo", "1.0.0", pad=PAD))
    ok(wire.put("/repositories/main/node/demo", demo, Content_Type="application/json"))
    push_image(wire, "main/images/app", IMAGE, "v1")
    for release in RELEASES:
        release.case.put_by(wire.below(f"repositories/main/{release.case.format}"), release.name, release.version)
    began_s = monotonic()
    limit = DescriptorLimit(server, wire, sum(len(probes(each)) for each in FREE))
    refused = 0
    try:
        for free in FREE:
            limit.leave(free)
            for probe in probes(free):
                reply = limit.ask(probe)
                if reply.status < 300:
                    continue
                assert (reply.status, reply.headers.get("retry-after")) == (503, "5"), (free, probe, reply)
                message = reply.json if probe.message else reply.reason
                if probe.message is None:
                    message += reply.text
                for each in probe.message or ():
                    message = message[each]
                assert "too many files open" in message, (free, probe, reply)
                refused += 1
    finally:
        limit.end()
    most = 1 + int((monotonic() - began_s) / LOG_EVERY_S)
    assert refused > len(FREE)
    for each in FREE:
        for probe in probes(each):
            fields = {"Content-Type": probe.media_type}
            reply = wire.ask(probe.method, probe.path, probe.body or None, fields)
            # What was published while there were descriptors is refused when it comes again, by some formats.
            assert reply.status < 300 or (probe.method != "GET" and reply.status in REPEATED), (probe, reply)
    server.stop()
    assert "Traceback" not in server.output, server.output
    assert 1 <= server.output.count("out of file descriptors") <= most
    assert server.output.count("EMFILE") <= most

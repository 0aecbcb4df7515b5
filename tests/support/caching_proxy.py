"""A site that hands out the files of one upstream and stores them, with nothing of a repository format."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import frozen
from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred

from pkgrepo.errors import NotFound, StorageFull, UpstreamFailed
from pkgrepo.gateway.responses.content import Files, arriving
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, text_response
from pkgrepo.model import BlobInfo, File, NewFile, ReadLimits
from pkgrepo.proxy.transfers.download import Download
from pkgrepo.proxy.transfers.receiving import Context
from pkgrepo.proxy.transfers.running import Transfers
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files
from tests.support.admission import admitted
from tests.support.repositories import RepositoryServices
from tests.support.socket_server import Server
from tests.support.timeouts import TIMEOUT_S

reactor: Any = _reactor
MAX_BYTES = 1 << 32


class CachingProxy:
    """
    ``transfers`` over the services of a repository; ``url`` is where clients ask.

    ``expected`` are digests by path, ``sizes`` are announced sizes by path; others are unknown. ``record_error`` is
    raised instead of recording.
    """

    def __init__(
        self,
        services: RepositoryServices,
        upstream: Any,
        *,
        certificate: Any = None,
        pauses_s: Sequence[float] = (0, 0, 0),
        most: int = 64,
    ) -> None:
        self.services = services
        self.upstream = upstream
        self.transfers = Transfers(Context(reactor=reactor, resume_pauses_s=pauses_s), most=most)
        self.expected: dict[str, Mapping[str, str]] = {}
        self.sizes: dict[str, int] = {}
        self.record_error: Exception | None = None
        self.files = Files(registry=services.registry, stores=services.stores, first_reads=services.first_reads)
        self.server = Server(self._answer, certificate)

    def expect(self, path: str, body: bytes, *algorithms: str) -> None:
        """Announce the digests of a file."""
        self.expected[path] = {name: hashlib.new(name, body).hexdigest() for name in algorithms or ("sha256",)}

    def row(self, path: str) -> File | None:
        """The row of a file that is stored."""
        found: File | None = self.services.catalog.peek(files.find_file, self.services.repository.id, path)
        return found

    async def stop(self) -> None:
        await self.transfers.stop()
        await self.server.stop()

    async def _answer(self, request: Request) -> Response:
        path = request.path.decode("ascii").lstrip("/")
        try:
            file = self.row(path)
            if file is None:
                transfer = self.transfers.get(self.services.repository.id, path, partial(self.download, path))
                found = await transfer.content()
                if not isinstance(found, File):
                    return Response(body=arriving(found), ranges=True)
                file = found
            return await self.files.answer(self.services.repository, file)
        except NotFound as error:
            return text_response(str(error), 404)
        except UpstreamFailed as error:
            return text_response(str(error), 502)
        except StorageFull as error:
            return text_response(str(error), 507)

    def download(self, path: str) -> Download[File]:
        """The download of a file."""
        return Download(
            route="main",
            open=lambda fields: self.upstream.open("GET", path, fields, limits=ReadLimits(MAX_BYTES)),
            stage=partial(self.services.content.stage, self.services.repository),
            record=partial(self._record, path),
            expected=self.expected.get(path, {}),
            size=self.sizes.get(path),
        )

    async def _record(self, path: str, staged: Staged, info: BlobInfo, headers: Any) -> File:
        if self.record_error is not None:
            raise self.record_error
        media_type = headers.get("Content-Type") or "application/octet-stream"
        release = Release(
            package_key=path,
            package_name=path,
            version_key="1",
            version_text="1",
            sort=b"1",
            files=(NewFile(path=path, blob=info, media_type=media_type),),
        )
        published = await self.services.content.publish(
            self.services.repository, release, staged, admitted(self.services.repository), lambda *_: None
        )
        return published.files[0]


@frozen
class Fetched:
    """A response as a client saw it; ``complete``: it has as many bytes as its head announced."""

    status: int
    fields: Mapping[str, str]
    body: bytes
    complete: bool


class Client:
    """One connection of a client, whose calls block."""

    def __init__(self, url: str, *, receive_buffer: int | None = None) -> None:
        scheme, _, address = url.partition("://")
        host, _, port = address.partition(":")
        self.socket = socket.socket()
        self.socket.settimeout(TIMEOUT_S)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect((host, int(port)))
        if scheme == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)
        self.received = b""

    def ask(self, path: str, method: str = "GET", **fields: str) -> None:
        """Send a request, after which the server closes the connection."""
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        self.socket.sendall(f"{method} /{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{lines}\r\n".encode())

    def read_body(self, count: int) -> None:
        """Read until at least so many bytes of the body are there."""
        while len(self.received.partition(b"\r\n\r\n")[2]) < count:
            piece = self.socket.recv(65536)
            assert piece, "the connection ended"
            self.received += piece

    def read(self) -> Fetched:
        """Read to the end, however it comes."""
        pieces = [self.received]
        with self.socket:
            try:
                while piece := self.socket.recv(262144):
                    pieces.append(piece)
            except (ConnectionError, ssl.SSLError):
                pass
        head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
        if not head:
            return Fetched(0, {}, b"", complete=False)
        first, *lines = head.decode("latin-1").split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        return Fetched(int(first.split()[1]), fields, body, len(body) == int(fields["content-length"]))


def in_thread(call: Any, *arguments: Any, **named: Any) -> Deferred[Any]:
    """Run a blocking call in a thread of its own, however many there are."""
    done: Deferred[Any] = Deferred()

    def run() -> None:
        try:
            result = call(*arguments, **named)
        except BaseException as error:  # noqa: BLE001 - raised by the caller's await
            reactor.callFromThread(done.errback, error)
        else:
            reactor.callFromThread(done.callback, result)

    threading.Thread(target=run, daemon=True).start()
    return done


def fetch(url: str, path: str, method: str = "GET", **fields: str) -> Deferred[Fetched]:
    """Send a request on a connection of its own, and read the response."""

    def run() -> Fetched:
        client = Client(url)
        client.ask(path, method, **fields)
        return client.read()

    return in_thread(run)

"""What the tests that are written once for all formats ask about one."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from attrs import frozen

from tests.support.http_client import HttpClient, Reply

Send = Callable[..., Awaitable[Any]]  # of method, path below a repository, bytes, and media type as ``kind``
OCTETS = "application/octet-stream"


@frozen(kw_only=True)
class Case:
    """
    How clients publish and read packages of a format.

    Patterns have ``{name}`` for the short name of a package, such as ``demo``, and ``{version}``. ``key`` is the whole
    name, ``binding`` is how a project owns it, and ``spelled`` how a version such as ``1.0.0`` is written. ``put``
    publishes a version of a package by its short name; ``more`` publishes what else ``demo`` has beside the two
    ``versions``, the second of which is its highest release; ``newest`` is its latest version if it is another.

    ``document`` lists a package, and has the bytes ``listed`` if and only if it lists the version; ``more_documents``
    are those of what ``more`` publishes. ``file`` is a file of a version. ``beside`` are further addresses of that in
    ``demo``, or of what belongs to it: all are refused like it. ``upstream`` is behind the address of a repository that
    is an upstream. With ``is_folder`` the document is the page of a folder, which is made when it is asked
    for: proxies do not keep it, and copies of a repository do not have it.

    ``sent`` is the file of a version as a person sends it in a form: its name, its bytes, and the fields before it.
    ``lock`` makes a lock file, its name and its text, from the short name, a version, and the bytes of ``file``.
    """

    format: str
    key: str = "{name}"
    binding: str = "{name}"
    versions: tuple[str, str] = ("1.0.0", "1.1.0")
    spelled: Callable[[str], str] = str
    put: Callable[[Send, str, str], Awaitable[Any]]
    more: Callable[[Send], Awaitable[Any]] | None = None
    newest: str = ""
    document: str
    listed: str
    more_documents: tuple[str, ...] = ()
    file: str
    beside: tuple[str, ...] = ()
    upstream: str = "/"
    is_folder: bool = False
    sent: Callable[[str, str], tuple[str, bytes, Mapping[str, str]]]
    lock: Callable[[str, str, bytes], tuple[str, str]]

    async def publish(self, send: Send) -> None:
        """Publish ``demo``."""
        for version in self.versions:
            await self.put(send, "demo", version)
        if self.more is not None:
            await self.more(send)

    def put_by(self, client: HttpClient, name: str, version: str) -> None:
        """Publish a version by a client of a repository."""
        asyncio.run(self.put(sender(client), name, version))  # type: ignore[arg-type]

    def replies(self, client: HttpClient, name: str, version: str) -> list[Reply]:
        """The responses to what a client sends to publish a version, up to the first refusal."""
        found: list[Reply] = []

        async def send(method: str, path: str, body: bytes, kind: str = OCTETS) -> Reply:
            if not found or found[-1].status in (200, 201):
                found.append(client.ask(method, path, body, {"Content-Type": kind}))
            return found[-1]

        asyncio.run(self.put(send, name, version))  # type: ignore[arg-type]
        return found

    def requests(self, name: str, version: str) -> list[tuple[str, str, bytes, str]]:
        """What a client sends to publish a version: methods, paths below the repository, bytes and media types."""
        found: list[tuple[str, str, bytes, str]] = []

        async def send(method: str, path: str, body: bytes, kind: str = OCTETS) -> None:
            found.append((method, path, body, kind))

        asyncio.run(self.put(send, name, version))  # type: ignore[arg-type]
        return found

    def publish_by(self, client: HttpClient) -> None:
        """Publish ``demo`` by a client of a repository."""
        asyncio.run(self.publish(sender(client)))

    def named(self, name: str) -> str:
        """The whole name of a package."""
        return self.key.format(name=name)

    def document_of(self, name: str) -> str:
        """The path of the document that lists a package."""
        return self.document.format(name=name)

    def file_of(self, name: str, version: str) -> str:
        """The path of a file of a version."""
        return self.file.format(name=name, version=self.spelled(version))

    def listing(self, name: str, version: str) -> bytes:
        """What the document has if it lists a version."""
        return self.listed.format(name=name, version=self.spelled(version)).encode()

    @property
    def name(self) -> str:
        """The whole name of ``demo``."""
        return self.named("demo")

    @property
    def segment(self) -> str:
        """That name as one segment of an address."""
        return quote(self.name, safe="")

    @property
    def version(self) -> str:
        """The highest release of ``demo``."""
        return self.versions[1]

    @property
    def documents(self) -> tuple[str, ...]:
        """All documents about ``demo``."""
        return (self.document_of("demo"), *self.more_documents)

    @property
    def shown(self) -> bytes:
        """What the first of the documents has if it lists the highest release."""
        return self.listing("demo", self.version)

    @property
    def files(self) -> tuple[str, ...]:
        """Files of the highest release."""
        return (self.file_of("demo", self.version),)

    @property
    def older(self) -> str:
        """A file of the version before."""
        return self.file_of("demo", self.versions[0])


def sender(client: HttpClient) -> Send:
    """What publishes by a client of a repository, and fails if that is refused."""

    async def send(method: str, path: str, body: bytes, kind: str = OCTETS) -> Reply:
        reply = client.ask(method, path, body, {"Content-Type": kind})
        assert reply.status in (200, 201), (path, reply.text)
        return reply

    return send


def sha256(data: bytes) -> str:
    """The digest of a file, in hex."""
    return hashlib.sha256(data).hexdigest()

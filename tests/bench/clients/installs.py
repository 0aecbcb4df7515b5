"""
Installs as clients make them, without their own work on the disk: metadata first, then files, over kept connections.

L{install_npm} asks as npm does: all documents of the tree first, then all tarballs, over at most 15 connections.
L{install_python} asks as pip does over one connection, or as uv does over many. L{resolve_maven} asks as Maven 3.9
does: all POMs first, then all jars, and for checksums that no header field announces. Every file is verified.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import io
import json
import re
import selectors
import socket
import time
import zipfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urljoin, urlsplit

from attrs import define, field, frozen

from tests.bench.upstream import IMAGE_CONNECTIONS

from .load import BUNDLER, DOCKER, FILE, MAVEN, NPM, PIP, STEP_LIMIT_S, LoadFailed, Reply, download, get
from .registry import Registry

NPM_CONNECTIONS = 15
PIP_CONNECTIONS = 1
UV_CONNECTIONS = 50
MAVEN_CONNECTIONS = 5
BUNDLER_CONNECTIONS = 4
REQUIRES = re.compile(rb"^Requires-Dist: *([A-Za-z0-9._-]+)", re.MULTILINE)
DEPENDENCY = re.compile(
    rb"<dependency>\s*<groupId>([^<]*)</groupId>\s*<artifactId>([^<]*)</artifactId>\s*<version>([^<]*)</version>"
)
PIECE = 1 << 20
DISCARDED = bytearray(PIECE)


@frozen
class Installed:
    """How long an install took, and what came: ``failed`` answers were errors."""

    seconds: float
    files: int
    failed: int


@frozen
class Read:
    """What one of several readers of a file waited for, in seconds, and how many bytes it got."""

    first_s: float
    seconds: float
    size: int


def install_npm(registry: str, root: str, headers: Mapping[str, str] | None = None) -> Installed:
    """Install a package with everything it needs, in the newest versions; ``headers`` are sent with each request."""
    return asyncio.run(_install(_npm(registry), [root], NPM_CONNECTIONS, headers or {}))


def install_python(
    page_url: Callable[[str], str], root: str, connections: int, headers: Mapping[str, str] | None = None
) -> Installed:
    """Install a project with everything it needs, in the newest versions; ``page_url`` gives the URL of a page."""
    return asyncio.run(_install(_python(page_url), [root], connections, headers or {}))


def resolve_maven(root_url: str, artifact: str, headers: Mapping[str, str] | None = None) -> Installed:
    """Resolve an artifact (``group:artifact:version``) with its dependencies from the repository at a URL."""
    return asyncio.run(_install(_maven(root_url), [artifact], MAVEN_CONNECTIONS, headers or {}))


def install_gems(root_url: str, root: str, headers: Mapping[str, str] | None = None) -> Installed:
    """Install a gem with its dependencies, in the versions listed last, as a Bundler that has no index yet."""
    return asyncio.run(_install(_bundler(root_url), [root], BUNDLER_CONNECTIONS, headers or {}))


def pull_image(registry: Registry, tag: str, headers: Mapping[str, str]) -> Installed:
    """Pull an image, three blobs at a time as docker does; ``headers`` are sent with each request."""
    fields = {**DOCKER, **registry.headers, **headers}
    started = time.perf_counter()
    manifest = json.loads(get(registry.manifest_url(tag), fields).body)
    blobs = [manifest["config"], *manifest["layers"]]

    def pull(blob: Mapping[str, object]) -> int:
        try:
            return int(download(registry.blob_url(str(blob["digest"])), fields) == blob["size"])
        except LoadFailed:
            return 0

    with ThreadPoolExecutor(IMAGE_CONNECTIONS) as pool:
        pulled = sum(pool.map(pull, blobs))
    return Installed(time.perf_counter() - started, pulled, len(blobs) - pulled)


def read_at_once(url: str, count: int) -> list[Read]:
    """Read a URL with so many clients at once, which keep nothing. :raises LoadFailed: an answer was not 200"""
    split = urlsplit(url)
    head = (
        f"GET {split.path} HTTP/1.1\r\nHost: {split.netloc}\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
    )
    readers = {_connect(split.hostname or "", split.port or 80): _Reader() for _ in range(count)}
    started = time.perf_counter()
    for connection in readers:
        connection.sendall(head.encode())
        connection.setblocking(False)
    with selectors.DefaultSelector() as selector:
        for connection, reader in readers.items():
            selector.register(connection, selectors.EVENT_READ, reader)
        while selector.get_map():
            ready = selector.select(STEP_LIMIT_S)
            if not ready:
                raise LoadFailed(f"{url}: a reader got nothing for {STEP_LIMIT_S:g} s")
            for key, _ in ready:
                assert isinstance(key.fileobj, socket.socket)
                if key.data.read(key.fileobj):
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
    wrong = [reader.status for reader in readers.values() if reader.status != 200]
    if wrong:
        raise LoadFailed(f"{url}: {len(wrong)} of {count} readers got {wrong[0]}")
    return [Read(each.first_at - started, each.done_at - started, each.size) for each in readers.values()]


@define
class _Reader:
    """One client of L{read_at_once}."""

    status: int = 0
    size: int = 0
    first_at: float = 0
    done_at: float = 0
    _length: int | None = None
    _head: bytes = b""

    def read(self, connection: socket.socket) -> bool:
        """Take what has come; whether that was all."""
        if not self.status:
            self._head += connection.recv(65536)
            head, end, rest = self._head.partition(b"\r\n\r\n")
            if not end:
                return False
            self.status = int(head.split()[1])
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            self._length = int(length[1]) if length else None
            came = len(rest)
        else:
            # tcp(7): MSG_TRUNC discards the bytes, which copying would make the reader slower than the server.
            came = connection.recv_into(DISCARDED, PIECE, socket.MSG_TRUNC)
            if not came:
                self.done_at = time.perf_counter()
                return True
        if came and not self.first_at:
            self.first_at = time.perf_counter()
        self.size += came
        self.done_at = time.perf_counter()
        return self._length is not None and self.size >= self._length


def _connect(host: str, port: int) -> socket.socket:
    connection = socket.create_connection((host, port), timeout=STEP_LIMIT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


@frozen
class _Wanted:
    """A file to fetch: where it is, and its digest; with None the SHA-1 that is announced with it."""

    url: str
    algorithm: str
    digest: bytes | None


_Get = Callable[[str, Mapping[str, str]], Awaitable[Reply]]
# From a name, what it needs, and its file.
_Resolve = Callable[[str, _Get], Awaitable[tuple[Sequence[str], _Wanted]]]
_Link = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Failed(Exception):
    """A request was answered with an error, or not at all."""


def _npm(registry: str) -> _Resolve:
    """What npm asks a registry for."""

    async def resolve(name: str, get: _Get) -> tuple[Sequence[str], _Wanted]:
        packument = json.loads((await get(f"{registry}/{name}", NPM)).body)
        version = packument["versions"][packument["dist-tags"]["latest"]]
        algorithm, _, digest = version["dist"]["integrity"].partition("-")
        wanted = _Wanted(version["dist"]["tarball"], algorithm, base64.b64decode(digest))
        return list(version.get("dependencies", ())), wanted

    return resolve


def _python(page_url: Callable[[str], str]) -> _Resolve:
    """What pip and uv ask an index for."""

    async def resolve(name: str, get: _Get) -> tuple[Sequence[str], _Wanted]:
        place = page_url(name)
        page = await get(place, PIP)
        if "json" not in page.headers.get("content-type", ""):
            raise LoadFailed(f"{place} is not JSON")
        file = max(json.loads(page.body)["files"], key=lambda each: _version(each["filename"]))
        url = urljoin(place, file["url"]).partition("#")[0]
        wanted = _Wanted(url, "sha256", bytes.fromhex(file["hashes"]["sha256"]))
        if file.get("core-metadata") or file.get("dist-info-metadata"):
            metadata = (await get(f"{url}.metadata", FILE)).body
        else:
            with zipfile.ZipFile(io.BytesIO((await get(url, FILE)).body)) as wheel:
                metadata = wheel.read(next(each for each in wheel.namelist() if each.endswith("/METADATA")))
        return [each.decode() for each in REQUIRES.findall(metadata)], wanted

    return resolve


def _maven(root_url: str) -> _Resolve:
    """What Maven asks a repository for."""

    async def resolve(name: str, get: _Get) -> tuple[Sequence[str], _Wanted]:
        group, artifact, version = name.split(":")
        stem = f"{root_url}/{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}"
        reply = await get(f"{stem}.pom", MAVEN)
        _verify(f"{stem}.pom", "sha1", reply, await _announced_sha1(f"{stem}.pom", reply, get))
        needs = [b":".join(each).decode() for each in DEPENDENCY.findall(reply.body)]
        return needs, _Wanted(f"{stem}.jar", "sha1", None)

    return resolve


def _bundler(root_url: str) -> _Resolve:
    """What Bundler asks a gem server for: before the first gem the list of all."""
    listed = list[Reply]()

    async def resolve(name: str, get: _Get) -> tuple[Sequence[str], _Wanted]:
        if not listed:
            listed.append(await get(f"{root_url}/versions", BUNDLER))
        line = (await get(f"{root_url}/info/{name}", BUNDLER)).body.decode().splitlines()[-1]
        head, _, rest = line.partition("|checksum:")
        version, _, needs = head.partition(" ")
        wanted = _Wanted(f"{root_url}/gems/{name}-{version}.gem", "sha256", bytes.fromhex(rest.partition(",")[0]))
        return [each.partition(":")[0] for each in needs.split(",") if each], wanted

    return resolve


async def _announced_sha1(url: str, reply: Reply, get: _Get) -> bytes:
    announced = reply.headers.get("x-checksum-sha1") or (await get(f"{url}.sha1", MAVEN)).body.decode()
    return bytes.fromhex(announced)


def _verify(url: str, algorithm: str, reply: Reply, digest: bytes) -> None:
    if hashlib.new(algorithm, reply.body).digest() != digest:
        raise LoadFailed(f"{url} has another digest")


async def _install(find: _Resolve, roots: Sequence[str], connections: int, more: Mapping[str, str]) -> Installed:
    pool = _Pool(connections)
    seen, wanted, failed = set(roots), [], 0
    started = time.perf_counter()

    async def get(url: str, headers: Mapping[str, str]) -> Reply:
        return await pool.get(url, {**headers, **more})

    async def resolve(name: str) -> None:
        nonlocal failed
        try:
            needs, file = await find(name, get)
        except _Failed:
            failed += 1
            return
        wanted.append(file)
        new = [each for each in needs if each not in seen]
        seen.update(new)
        await asyncio.gather(*map(resolve, new))

    async def fetch(file: _Wanted) -> None:
        nonlocal failed
        try:
            reply = await get(file.url, FILE)
            digest = file.digest or await _announced_sha1(file.url, reply, get)
        except _Failed:
            failed += 1
            return
        _verify(file.url, file.algorithm, reply, digest)

    try:
        await asyncio.gather(*map(resolve, roots))
        await asyncio.gather(*map(fetch, wanted))
    finally:
        pool.close()
    return Installed(time.perf_counter() - started, len(wanted), failed)


def _version(filename: str) -> tuple[int, ...]:
    return tuple(int(part) for part in filename.split("-")[1].split("."))


@define
class _Pool:
    """Connections that are kept, at most so many requests at a time."""

    count: int
    _idle: dict[str, list[_Link]] = field(factory=dict)
    _free: asyncio.Semaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.count)

    async def get(self, url: str, headers: Mapping[str, str]) -> Reply:
        """Return a whole answer, decoded. :raises _Failed: there is none, or an error"""
        async with self._free:
            try:
                reply = await self._ask(url, headers)
            except (OSError, EOFError) as problem:
                raise _Failed(str(problem)) from problem
        if reply.status != 200:
            raise _Failed(f"{url}: {reply.status}")
        return reply

    def close(self) -> None:
        for each in self._idle.values():
            for _, writer in each:
                writer.close()

    async def _ask(self, url: str, headers: Mapping[str, str]) -> Reply:
        split = urlsplit(url)
        idle = self._idle.setdefault(split.netloc, [])
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        request = f"GET {split.path} HTTP/1.1\r\nHost: {split.netloc}\r\n{fields}\r\n".encode()
        while idle:
            connection = idle.pop()
            with suppress(OSError, EOFError):
                return await self._exchange(request, connection, idle)
        made = await asyncio.open_connection(split.hostname, split.port, limit=PIECE)
        return await self._exchange(request, made, idle)

    async def _exchange(self, request: bytes, connection: _Link, idle: list[_Link]) -> Reply:
        reader, writer = connection
        try:
            writer.write(request)
            line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
            pairs = (each.partition(":") for each in rest)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            body = await _body(reader, headers)
        except BaseException:
            writer.close()
            raise
        if headers.get("connection", "").lower() == "close":
            writer.close()
        else:
            idle.append(connection)
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        return Reply(int(line.split()[1]), headers, body)


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    if headers.get("transfer-encoding") != "chunked":
        return await reader.read()
    parts = []
    while size := int((await reader.readline()).partition(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readline()
    return b"".join(parts)

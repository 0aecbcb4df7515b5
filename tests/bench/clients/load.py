"""Load generators: small requests by wrk, large transfers by curl, and uploads by concurrent clients."""

from __future__ import annotations

import base64
import http.client
import json
import math
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen

CONNECTIONS = 16
STEP_LIMIT_S = 600.0  # seconds; the timeout of one transfer
SLACK_S = 20.0  # seconds that wrk may run longer than its duration
PIP = {
    "User-Agent": "pip/26.3",
    "Accept": "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01",
    "Accept-Encoding": "gzip, deflate",
}
HTML = {**PIP, "Accept": "text/html"}
FILE = {"User-Agent": "pip/26.3", "Accept": "*/*", "Accept-Encoding": "identity"}
MAVEN = {"User-Agent": "Apache-Maven/3.9.9 (Java 17; Linux)", "Cache-Control": "no-cache"}
BUNDLER = {"User-Agent": "bundler/2.6.9 rubygems/3.6.9 ruby/3.1.2", "Accept": "*/*"}
CARGO_CLIENT = {"User-Agent": "cargo/1.95.0", "Accept": "*/*", "Accept-Encoding": "deflate, gzip"}
GO_CLIENT = {"User-Agent": "Go-http-client/1.1", "Accept-Encoding": "gzip"}
HELM_CLIENT = {"User-Agent": "Helm/4.3"}
CURL = {"User-Agent": "curl/7.88.1", "Accept": "*/*"}
NPM = {
    "User-Agent": "npm/11.19.1 node/v24.1.0 linux x64 workspaces/false",
    "Accept": "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*",
    "Accept-Encoding": "gzip,deflate",
}

# The Accept field of docker 28, from which registries choose the representation.
DOCKER = {
    "User-Agent": "docker/28.2.2 go/go1.24.3 kernel/6.1.0 os/linux arch/amd64",
    "Accept": ", ".join(
        [
            "application/json",
            "application/vnd.docker.distribution.manifest.v2+json",
            "application/vnd.docker.distribution.manifest.list.v2+json",
            "application/vnd.oci.image.index.v1+json",
            "application/vnd.oci.image.manifest.v1+json",
        ]
    ),
}


class LoadFailed(Exception):
    """A contestant failed a request, so that its figures would be meaningless."""


@frozen
class Reply:
    """A complete response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def accepted(self, asked: str) -> Reply:
        """Itself. :raises LoadFailed: the request was refused"""
        if self.status >= 300:
            raise LoadFailed(f"{asked}: {self.status} {self.body[:300]!r}")
        return self


@frozen
class Hits:
    """The results of wrk. Latencies in milliseconds; ``refused`` counts responses with a status of 400 or more."""

    requests: int
    seconds: float
    size: int
    failed: int
    refused: int
    p50_ms: float
    p99_ms: float


@frozen
class Target:
    """The URL of uploads, with the header fields of their credentials."""

    url: str
    headers: Mapping[str, str] = field(factory=dict, repr=False)


@frozen
class Post:
    """A request with a body of known length, given in parts; ``path`` replaces that of the target."""

    headers: Mapping[str, str]
    parts: Sequence[bytes | memoryview]
    size: int
    method: str = "POST"
    path: str | None = None


Body = bytes | Iterator[bytes | memoryview] | None


class Connection:
    """The connection of a client to the server of a URL, reopened when the server closes it after a response."""

    def __init__(self, url: str, timeout_s: float = 60.0) -> None:
        split = urlsplit(url)
        self._connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=timeout_s)

    def begin(self, method: str, url: str, headers: Mapping[str, str], body: Body = None) -> http.client.HTTPResponse:
        """Send a request to an address or path of the server; the head of the response."""
        self._connection.request(method, _path(url), body, dict(headers))
        return self._connection.getresponse()

    def ask(self, method: str, url: str, headers: Mapping[str, str], body: Body = None) -> Reply:
        """The response to a request; redirects are not followed."""
        answer = self.begin(method, url, headers, body)
        return Reply(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())

    def close(self) -> None:
        """Close it; the next request opens it again."""
        self._connection.close()


def basic(user: str, password: str) -> dict[str, str]:
    """Basic credentials as header fields."""
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"}


def get(url: str, headers: Mapping[str, str]) -> Reply:
    """Send a GET request, and read the whole response; redirects are not followed."""
    with closing(Connection(url)) as connection:
        return connection.ask("GET", url, headers)


def send_json(method: str, url: str, value: object, headers: Mapping[str, str]) -> Any:
    """The decoded answer to a JSON request, or None when it is empty. :raises LoadFailed: it was refused"""
    body = json.dumps(value).encode()
    with closing(Connection(url)) as connection:
        reply = connection.ask(method, url, {"Content-Type": "application/json", **headers}, body).accepted(
            f"{method} {url}"
        )
    return json.loads(reply.body) if reply.body.strip() else None


def wrk(
    url: str,
    headers: Mapping[str, str],
    seconds: float,
    *,
    turns: Path | None = None,
    connections: int = CONNECTIONS,
    refused: bool = False,
) -> Hits:
    """
    Ask for one address as fast as one thread with kept connections can.

    ``turns`` is a file of other addresses of the same server to ask for in turn, see L{write_turns}.

    :raises LoadFailed: an answer was missing or refused; with ``refused``, if one was not refused
    """
    command = ["wrk", "-t1", f"-c{connections}", f"-d{math.ceil(seconds)}s", "--latency", "--timeout", "10s"]
    command += ["-s", str(Path(__file__).with_name("wrk.lua"))]
    for name, value in headers.items():
        command += ["-H", f"{name}: {value}"]
    command += [url, *(["--", str(turns)] if turns else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + SLACK_S, check=True)
    figures = json.loads(done.stdout.strip().splitlines()[-1])
    hits = Hits(
        requests=figures["requests"],
        seconds=figures["duration_us"] / 1e6,
        size=figures["bytes"],
        failed=figures["failed"],
        refused=figures["refused"],
        p50_ms=figures["p50_us"] / 1e3,
        p99_ms=figures["p99_us"] / 1e3,
    )
    if hits.refused != (hits.requests if refused else 0) or not hits.requests:
        raise LoadFailed(f"{url}: {hits.refused} of {hits.requests} answers were refusals")
    return hits


def first_bytes(urls: Sequence[str], headers: Mapping[str, str]) -> list[float]:
    """
    Ask for addresses of a server in turn on one connection; the milliseconds until each answer's body began.

    :raises LoadFailed: an answer was not 200
    """
    took_ms = []
    with closing(Connection(urls[0])) as connection:
        for url in urls:
            started = time.perf_counter()
            answer = connection.begin("GET", url, headers)
            answer.read(1)
            took_ms.append((time.perf_counter() - started) * 1e3)
            answer.read()
            if answer.status != 200:
                raise LoadFailed(f"GET {url}: {answer.status}")
    return took_ms


def write_turns(path: Path, urls: Sequence[str], agents: Sequence[str]) -> Path:
    """Write the file of L{wrk}'s ``turns``: each kind of client requests each URL."""
    lines = [f"{_path(url)}\t{agent}\n" for agent in agents for url in urls]
    path.write_text("".join(lines))
    return path


def download(url: str, headers: Mapping[str, str] | None = None) -> int:
    """Read an address to its end, keeping nothing; the number of bytes. :raises LoadFailed: the answer was not 200"""
    fields = _fields(headers or {})
    out = _curl("--output", "/dev/null", "--write-out", "%{http_code} %{size_download}", *fields, url)
    status, size = out.split()
    if status != "200":
        raise LoadFailed(f"GET {url}: {status}")
    return int(size)


def put_file(url: str, path: Path, target: Target) -> None:
    """Send a file as the body of a PUT. :raises LoadFailed: it was refused"""
    _upload("--upload-file", str(path), url, target=target)


def patch_file(path: Path, target: Target) -> str:
    """
    Send a file as the body of a PATCH, in chunks whose sum is not announced; the ``Location`` of the answer, or
    nothing.

    :raises LoadFailed: it was refused
    """
    chunked = {**target.headers, "Transfer-Encoding": "chunked"}
    how = ["--request", "PATCH", "--upload-file", str(path), "--output", "/dev/null", *_fields(chunked)]
    status, _, location = _curl(*how, "--write-out", "%{http_code} %header{location}", target.url).partition(" ")
    if not status.startswith("2"):
        raise LoadFailed(f"PATCH {target.url}: {status}")
    return location


def post_file(path: Path, fields: Iterable[tuple[str, str]], target: Target) -> None:
    """
    Send a file as the ``content`` of an upload form, read from the disk as it goes.

    :raises LoadFailed: it was refused
    """
    form = [each for name, value in fields for each in ("--form-string", f"{name}={value}")]
    _upload(*form, "--form", f"content=@{path};type=application/octet-stream", target.url, target=target)


def post_all(target: Target, posts: Sequence[Post], clients: int) -> list[float]:
    """
    Send requests from several clients, each on a connection it keeps; the milliseconds that each took.

    All clients begin together.

    :raises LoadFailed: one was refused
    """
    barrier = threading.Barrier(clients)

    def client(number: int) -> list[float]:
        barrier.wait()
        with closing(Connection(target.url, STEP_LIMIT_S)) as connection:
            return [send(connection, target, post) for post in posts[number::clients]]

    with ThreadPoolExecutor(clients) as pool:
        return [took for times in pool.map(client, range(clients)) for took in times]


class Prober(threading.Thread):
    """
    Asks for one address at a steady pace until told to stop, whatever the answers take.

    A latency counts from the moment at which its request was due, so that a stall counts for each request it delayed.
    """

    def __init__(self, url: str, headers: Mapping[str, str], per_second: float) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._headers = dict(headers)
        self._pause_s = 1 / per_second
        self._stopped = threading.Event()
        self._late_ms: list[float] = []
        self._refused = 0

    def run(self) -> None:
        due = time.perf_counter()
        with closing(Connection(self._url)) as connection:
            while not self._stopped.wait(max(0.0, due - time.perf_counter())):
                self._refused += connection.ask("GET", self._url, self._headers).status >= 400
                self._late_ms.append((time.perf_counter() - due) * 1e3)
                due += self._pause_s

    def finish(self) -> list[float]:
        """
        Stop asking; the milliseconds that each answer took.

        :raises LoadFailed: there was none, or a refusal among them
        """
        self._stopped.set()
        self.join(STEP_LIMIT_S)
        if self._refused or not self._late_ms:
            raise LoadFailed(f"{self._url}: {self._refused} of {len(self._late_ms)} answers were refusals")
        return self._late_ms


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that is not below ``percent`` of all values."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


def send(connection: Connection, target: Target, post: Post) -> float:
    """Send an upload, and read the whole response; the milliseconds that it took. :raises LoadFailed: it was refused"""
    started = time.perf_counter()
    headers = {**target.headers, **post.headers, "Content-Length": str(post.size)}
    url = target.url if post.path is None else post.path
    connection.ask(post.method, url, headers, iter(post.parts)).accepted(f"{post.method} {target.url}")
    return (time.perf_counter() - started) * 1e3


def _path(url: str) -> str:
    split = urlsplit(url)
    return f"{split.path or '/'}?{split.query}" if split.query else split.path or "/"


def _upload(*arguments: str, target: Target) -> None:
    out = _curl("--output", "-", "--write-out", "\n%{http_code}", *_fields(target.headers), *arguments)
    body, _, status = out.rpartition("\n")
    if not status.startswith("2"):
        raise LoadFailed(f"upload to {target.url}: {status} {body[:300]}")


def _fields(headers: Mapping[str, str]) -> list[str]:
    return [each for name, value in headers.items() for each in ("--header", f"{name}: {value}")]


def _curl(*arguments: str) -> str:
    command = ["curl", "--silent", "--show-error", "--noproxy", "*", "--max-time", str(STEP_LIMIT_S), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=STEP_LIMIT_S + SLACK_S, check=False)
    if done.returncode:
        raise LoadFailed(f"{' '.join(command[-2:])}: {done.stderr.strip()}")
    return done.stdout

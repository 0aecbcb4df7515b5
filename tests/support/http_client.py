"""A plain HTTP client, which sends paths unchanged, and does not redirect, retry or decode."""

from __future__ import annotations

import http.client
import json
import socket
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from attrs import frozen

from tests.support.timeouts import TIMEOUT_S

BOUNDARY = "0d9f3c5e7a"

Field = tuple[str, str] | tuple[str, str, bytes]


@frozen
class Reply:
    """A response; ``headers`` by lower-case name."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class HttpClient:
    """
    A client of the server at ``url``; paths are relative to it.

    ``auth`` are user and password of every request; each request has a connection of its own.
    """

    def __init__(self, url: str, auth: tuple[str, str] | None = None) -> None:
        self.url = url
        self.parts = urlsplit(url)
        self._auth = auth

    def as_user(self, *auth: str) -> HttpClient:
        """Return a client with the same base URL and other credentials, or none."""
        return HttpClient(self.url, (auth[0], auth[1]) if auth else None)

    def elsewhere(self, url: str) -> HttpClient:
        """Return a client with the same credentials and another base URL."""
        return HttpClient(url, self._auth)

    def below(self, path: str) -> HttpClient:
        """Return a client whose base URL is below this one."""
        return HttpClient(f"{self.url}/{path}", self._auth)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | str | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request, and return the response; ``headers`` may replace the credentials."""
        connection = http.client.HTTPConnection(self.parts.hostname or "", self.parts.port, timeout=TIMEOUT_S)
        fields = {**basic(self._auth), **(headers or {})}
        try:
            connection.putrequest(method, self.target(path), skip_host="Host" in fields, skip_accept_encoding=True)
            data = body.encode() if isinstance(body, str) else body
            if isinstance(data, bytes):
                fields["Content-Length"] = str(len(data))
            elif data is not None:
                fields["Transfer-Encoding"] = "chunked"
            for name, value in fields.items():
                connection.putheader(name, value)
            connection.endheaders(data, encode_chunked=data is not None and not isinstance(data, bytes))
            answer = connection.getresponse()
            received = answer.read()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, answer.reason, found, received)
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        """GET; keyword arguments are header fields with underscores for dashes."""
        return self.ask("GET", path, headers=dashed(headers))

    def head(self, path: str, **headers: str) -> Reply:
        return self.ask("HEAD", path, headers=dashed(headers))

    def put(self, path: str, body: bytes, **headers: str) -> Reply:
        return self.ask("PUT", path, body, dashed(headers))

    def delete(self, path: str) -> Reply:
        return self.ask("DELETE", path)

    def post(self, path: str, body: bytes | str = b"", **headers: str) -> Reply:
        return self.ask("POST", path, body, dashed(headers))

    def post_json(self, path: str, value: object, method: str = "POST") -> Reply:
        return self.ask(method, path, json.dumps(value), {"Content-Type": "application/json"})

    def post_form(self, path: str, fields: Sequence[Field], **headers: str) -> Reply:
        """POST a multipart form with the fields in this order; a file is a name, a file name and its bytes."""
        content_type = f"multipart/form-data; boundary={BOUNDARY}"
        return self.ask("POST", path, form_body(fields), {"Content-Type": content_type, **dashed(headers)})

    def connect(self) -> socket.socket:
        """Return a TCP connection, for requests that no library sends."""
        return socket.create_connection((self.parts.hostname or "", self.parts.port or 80), TIMEOUT_S)

    def target(self, path: str) -> str:
        return f"{self.parts.path}{path}" or "/"

    def head_lines(self, method: str, path: str, **headers: str) -> bytes:
        """Return the head of a request as bytes, including the empty line."""
        fields = {"Host": self.parts.netloc, **basic(self._auth), **dashed(headers)}
        lines = [f"{method} {self.target(path)} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def read_reply(connection: socket.socket, method: str = "POST") -> Reply:
    """Read the next response from a TCP connection, which may be a 100."""
    answer = http.client.HTTPResponse(connection, method=method)
    version, status, reason = answer._read_status()  # type: ignore[attr-defined]  # begin() would skip a 100
    if status == 100:
        while answer.fp.readline().strip():
            pass
        return Reply(status, reason.strip(), {}, b"")
    answer._read_status = lambda: (version, status, reason)  # type: ignore[attr-defined]
    answer.begin()
    return Reply(status, answer.reason, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


def form_body(fields: Sequence[Field]) -> bytes:
    """Return a multipart form as bytes, with the boundary ``BOUNDARY``."""
    parts = []
    for name, value, *content in fields:
        file = f'; filename="{value}"' if content else ""
        data = content[0] if content else value.encode()
        parts.append(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + data)
    return b"\r\n".join([*parts, f"--{BOUNDARY}--\r\n".encode()])


def basic(auth: tuple[str, str] | None) -> dict[str, str]:
    """Return the header field for these credentials."""
    if auth is None:
        return {}
    return {"Authorization": "Basic " + b64encode(":".join(auth).encode()).decode()}


def dashed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}

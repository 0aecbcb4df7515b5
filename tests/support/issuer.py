"""An OpenID Connect issuer in the test process, as a forge has one for its pipelines."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

AUDIENCE = "https://packages.example"
ALGORITHMS = {"RS256": jwt.algorithms.RSAAlgorithm, "ES256": jwt.algorithms.ECAlgorithm}
CLAIMS = {
    "sub": "repo:acme/widget:ref:refs/tags/v1",
    "repository": "acme/widget",
    "repository_owner": "acme",
    "ref": "refs/tags/v1",
    "job_workflow_ref": "acme/widget/.github/workflows/release.yml@refs/tags/v1",
    "environment": "release",
}


def make_key() -> Any:
    """A new RSA key."""
    return rsa.generate_private_key(65537, 2048)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """A connection that is aborted is no error of the issuer."""


class Issuer:
    """
    Listens at ``url``, with an RSA and an EC key that ``rotate`` replaces.

    ``paths`` are those of the requests that came. ``answer`` may replace a response: it returns status and body for a
    path, or None. A request to ``/token`` is that of a job for its identity token; those have ``claims``.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.answer: Callable[[str], tuple[int, bytes] | None] = lambda _path: None
        self.claims: dict[str, Any] = dict(CLAIMS)
        self.keys: dict[str, tuple[str, Any]] = {}
        self.rotate()
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                issuer.paths.append(path)
                status, body = issuer.answer(path) or issuer.respond(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Keep the tests' output clean."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def rotate(self) -> None:
        """Replace the keys."""
        self.keys = {
            uuid.uuid4().hex: ("RS256", make_key()),
            uuid.uuid4().hex: ("ES256", ec.generate_private_key(ec.SECP256R1())),
        }

    def token(
        self, *, algorithm: str = "RS256", audience: str = AUDIENCE, key: Any = None, kid: str = "", **changes: Any
    ) -> str:
        """
        A new identity token with ``claims``; changes that are None remove a claim.

        ``key`` signs it instead of one of the issuer's own, ``kid`` names another key.
        """
        own_kid, own_key = next((kid, key) for kid, (name, key) in self.keys.items() if name == algorithm)
        now = int(time.time())
        claims = {"iss": self.url, "aud": audience, "iat": now, "nbf": now, "exp": now + 300, "jti": uuid.uuid4().hex}
        claims |= self.claims | changes
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(claims, key or own_key, algorithm, headers={"kid": kid or own_kid})

    def respond(self, target: str) -> tuple[int, bytes]:
        """The response to a path with a query."""
        parts = urlsplit(target)
        if parts.path == "/.well-known/openid-configuration":
            value: Any = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        elif parts.path == "/keys":
            value = {
                "keys": [
                    {**ALGORITHMS[name].to_jwk(key.public_key(), as_dict=True), "kid": kid, "alg": name, "use": "sig"}
                    for kid, (name, key) in self.keys.items()
                ]
            }
        elif parts.path == "/token":
            value = {"value": self.token(audience=parse_qs(parts.query)["audience"][0])}
        else:
            return 404, b"{}"
        return 200, json.dumps(value).encode()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def listening() -> Iterator[Issuer]:
    """An issuer that listens."""
    issuer = Issuer()
    try:
        yield issuer
    finally:
        issuer.close()


def issuer_lines(issuer: Issuer, audience: str = AUDIENCE) -> str:
    """The lines of a configuration that accept tokens of an issuer, which is called forge."""
    return f'auth.issuers.forge = {{ issuer = "{issuer.url}", audience = "{audience}" }}\n'

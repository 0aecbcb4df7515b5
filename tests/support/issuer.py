"""An OpenID Connect issuer in the test process, as a forge has one for its pipelines."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

AUDIENCE = "https://packages.example"
ALGORITHMS = {"RS256": jwt.algorithms.RSAAlgorithm, "ES256": jwt.algorithms.ECAlgorithm}
CLIENT, SECRET = "pkgrepo", "a secret of the client"
CLAIMS = {
    "sub": "repo:acme/widget:ref:refs/tags/v1",
    "repository": "acme/widget",
    "repository_owner": "acme",
    "ref": "refs/tags/v1",
    "workflow_ref": "acme/widget/.github/workflows/release.yml@refs/tags/v1",
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

    ``paths`` are those of the requests that came. ``metadata`` is more of its configuration. ``answer`` may replace a
    response: it returns status and body for a path, or None. A request to ``/token`` is that of a job for its identity
    token; those have ``claims``.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.answer: Callable[[str], tuple[int, bytes] | None] = lambda _path: None
        self.claims: dict[str, Any] = dict(CLAIMS)
        self.keys: dict[str, tuple[str, Any]] = {}
        self.metadata: dict[str, Any] = {}
        self.person: dict[str, Any] = {}
        self.refreshable: set[str] = set()
        self._codes: dict[str, Any] = {}
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

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
                path = urlsplit(self.path).path
                issuer.paths.append(path)
                form = {name: values[0] for name, values in parse_qs(body).items()}
                status, sent = issuer.answer(path) or issuer.tokens(form, self.headers.get("Authorization", ""))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

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
            value: Any = {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/tokens",
                "userinfo_endpoint": f"{self.url}/me",
                **self.metadata,
            }
        elif parts.path == "/keys":
            value = {
                "keys": [
                    {**ALGORITHMS[name].to_jwk(key.public_key(), as_dict=True), "kid": kid, "alg": name, "use": "sig"}
                    for kid, (name, key) in self.keys.items()
                ]
            }
        elif parts.path == "/token":
            value = {"value": self.token(audience=parse_qs(parts.query)["audience"][0])}
        elif parts.path == "/me":
            value = self.person
        else:
            return 404, b"{}"
        return 200, json.dumps(value).encode()

    def approve(self, url: str, person: dict[str, Any], **token_claims: Any) -> dict[str, str]:
        """
        Log a person in at the address that a browser was sent to. Returns what the browser is sent back with.

        ``token_claims`` replace claims of the identity token; ``person`` are those of the userinfo endpoint.
        """
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        code = uuid.uuid4().hex
        self.person = person
        self._codes[code] = query | {"claims": {"nonce": query["nonce"], "sub": person["sub"], **token_claims}}
        return {"code": code, "state": query["state"]}

    def tokens(self, form: dict[str, str], authorization: str) -> tuple[int, bytes]:
        """The response of the token endpoint."""
        if authorization != "Basic " + base64.b64encode(f"{CLIENT}:{quote(SECRET)}".encode()).decode():
            return 401, b'{"error": "invalid_client"}'
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.refreshable:
                return 400, b'{"error": "invalid_grant"}'
            return 200, json.dumps({"access_token": "a"}).encode()
        found = self._codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if found is None or found["redirect_uri"] != form["redirect_uri"] or found["code_challenge"] != challenge:
            return 400, b'{"error": "invalid_grant"}'
        refresh = uuid.uuid4().hex
        self.refreshable.add(refresh)
        claims = dict.fromkeys(self.claims) | {"audience": CLIENT, **found["claims"]}
        value = {"access_token": "a", "id_token": self.token(**claims), "refresh_token": refresh}
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


def issuer_lines(issuer: Issuer, audience: str = AUDIENCE, kind: str = "") -> str:
    """The lines of a configuration that accept tokens of an issuer, which is called forge."""
    return f'auth.issuers.forge = {{ issuer = "{issuer.url}", audience = "{audience}", kind = "{kind}" }}\n'

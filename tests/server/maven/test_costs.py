"""What a deploy costs: one password verification for all of its requests, and none for those without credentials."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from twisted.internet.threads import deferToThread

from pkgrepo.auth.login.passwords import Passwords
from tests.support.http_client import basic
from tests.support.inprocess_server import PASSWORD
from tests.support.maven_files import JAR, make_pom, sums
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

BASE = "/repositories/main/mvn/com/example/app/1.0/app-1.0"


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that the server verifies, as it does so."""
    passwords: list[str] = []
    verify = Passwords._verify

    def count(self: Passwords, stored: str, password: str) -> Any:
        passwords.append(password)
        return verify(self, stored, password)

    monkeypatch.setattr(Passwords, "_verify", count)
    return passwords


def deploy() -> Iterator[tuple[str, bytes]]:
    """Yield the uploads of a deploy of Maven 3.8: each file, then its checksums."""
    pom = make_pom("com.example", "app", "1.0")
    for rest, data in ((".jar", JAR), (".pom", pom), ("-sources.jar", b"sources")):
        yield BASE + rest, data
        for algorithm in ("sha1", "md5"):
            yield f"{BASE}{rest}.{algorithm}", sums(data)[algorithm].encode()


async def test_a_deploy_verifies_one_password(make_server: Any, verified: list[str]) -> None:
    server = await make_server(bootstrap__repositories=[{"name": "mvn", "format": "maven", "visibility": "private"}])

    def run() -> list[int]:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=TIMEOUT_S)
        statuses = []
        for method, path, data, fields in (
            *(("GET", f"{BASE}.jar", None, {}) for _ in range(20)),
            *(("PUT", path, data, basic(server.admin)) for path, data in deploy()),
            *(("GET", f"{BASE}.jar", None, {}) for _ in range(20)),
        ):
            connection.request(method, path, data, fields)
            reply = connection.getresponse()
            reply.read()
            statuses.append(reply.status)
            assert not reply.will_close  # all over one connection, also after a 401
        connection.close()
        return statuses

    assert await deferToThread(run) == [401] * 20 + [201] * 9 + [401] * 20
    assert verified == [PASSWORD]

"""A whole server without ports: requests are written as bytes to connections in memory."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from urllib.parse import quote

from attrs import frozen
from msgspec.structs import replace
from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from pkgrepo.assembly import Assembly
from pkgrepo.auth.login.passwords import Passwords
from pkgrepo.config.sections.bootstrap import Bootstrap
from pkgrepo.management.app import ManagementApp
from tests.support.inprocess_server import PASSWORD, no_failures, server_config
from tests.support.memory_connection import parse_answers
from tests.support.python_packages import make_sdist, make_wheel
from tests.support.quick_starts import FAST, quicken

reactor: Any = _reactor
ADMIN = ("admin", PASSWORD)
# The configuration of a Python repository in whose storage nothing appears but what a test publishes.
WITHOUT_CONDA = {"type": "Hosted", "conda": {"from_wheels": False}}
OTHER_PASSWORD = "a horse of another colour"
quicken()


@frozen
class Reply:
    """An answer as a client of the API reads it."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def pointer(self) -> str:
        """The pointer of the first error of a problem."""
        return str(self.json["errors"][0]["pointer"])


@cache
def _described() -> list[tuple[re.Pattern[str], Any]]:
    """Operations by patterns of paths, those with the fewest parameters first."""
    document = ManagementApp(MagicMock()).description.describe()  # no handler is called
    paths = sorted(document["paths"].items(), key=lambda item: item[0].count("{"))
    return [
        (re.compile("/".join("[^/]+" if part[:1] == "{" else re.escape(part) for part in path.split("/"))), operations)
        for path, operations in paths
    ]


def described_statuses(method: str, path: str) -> set[str] | None:
    """The statuses that the OpenAPI document lists for a request; None where it has no such operation."""
    bare = path.partition("?")[0]
    for pattern, operations in _described():
        if pattern.fullmatch(bare):
            found = operations.get(method.lower())
            return None if found is None else set(found["responses"])
    return None


class ClosingTransport(StringTransport):
    """``closed`` fires when the server closes the connection."""

    def __init__(self) -> None:
        super().__init__()
        self.closed: Deferred[None] = Deferred()

    def loseConnection(self) -> None:
        super().loseConnection()
        if not self.closed.called:
            self.closed.callback(None)

    def abortConnection(self) -> None:
        super().abortConnection()
        if not self.closed.called:
            self.closed.callback(None)


class Stack:
    """
    A whole server without ports, with a real catalog and real files.

    ``transport`` has what was answered last, also while the rest of it is awaited.

    Callers are named by ``who``: ``admin``, the user names that ``add_user`` was given, None for nobody, or a token.
    """

    def __init__(self, folder: Path, *, with_admin: bool = True, **overrides: Any) -> None:
        self.folder = folder
        config = server_config(folder, **overrides)
        if not with_admin:
            config = replace(config, bootstrap=Bootstrap())
        self.assembly = Assembly(config, reactor)
        core = self.assembly.core
        core.passwords = Passwords(core.pools.cpu, core.reactor, hasher=FAST)
        self._secrets = dict([ADMIN])
        self.transport = ClosingTransport()

    async def start(self) -> None:
        await self.assembly.start()

    async def stop(self) -> None:
        await self.assembly.stop()

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        who: str | None = "admin",
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Reply:
        """Send one request, and return its answer."""
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        fields = {"Host": "registry.example", "Connection": "close", **(headers or {})}
        if who is not None:
            fields.setdefault("Authorization", self.authorization(who))
        if data or method in {"POST", "PUT", "PATCH"}:
            fields.setdefault("Content-Length", str(len(data)))
            fields.setdefault("Content-Type", "application/x-www-form-urlencoded")  # what curl -d says
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        transport = self.transport = ClosingTransport()
        channel = self.assembly.site.buildProtocol(None)
        channel.makeConnection(transport)
        channel.dataReceived(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + data)
        await transport.closed
        answers = parse_answers(transport.value(), heads=0 if method == "HEAD" else None)
        channel.connectionLost(Failure(ConnectionDone()))
        answer = answers[-1]
        return Reply(answer.status, answer.headers, answer.body)

    async def api(self, method: str, path: str, body: Any = None, **rest: Any) -> Reply:
        """The same below ``/api``; the status must be one that the OpenAPI document lists for the route."""
        reply = await self.call(method, f"/api{path}", body, **rest)
        named = described_statuses(method, path)
        assert named is None or str(reply.status) in named, (method, path, reply.status, "is not in OpenAPI")
        return reply

    async def ok(self, method: str, path: str, body: Any = None, **rest: Any) -> Any:
        """The JSON of the answer, whose status must be a success."""
        reply = await self.api(method, path, body, **rest)
        assert reply.status < 300, (method, path, reply.status, reply.body)
        return reply.json if reply.body else None

    def authorization(self, who: str) -> str:
        if who.startswith(("pkgr_", "eyJ")):
            return f"Bearer {who}"
        return "Basic " + base64.b64encode(f"{who}:{self._secrets[who]}".encode()).decode()

    def password(self, username: str) -> str:
        """The password of that caller."""
        return self._secrets[username]

    def set_password(self, username: str, password: str) -> None:
        """Use this password for that caller from now on."""
        self._secrets[username] = password

    async def add_user(self, username: str, password: str = OTHER_PASSWORD, **fields: Any) -> Any:
        self.set_password(username, password)
        return await self.ok("POST", "/users", {"username": username, "password": password, **fields})

    async def add_repository(self, name: str = "py", **fields: Any) -> Any:
        body = {"name": name, "storage": "main", "format": "python", "visibility": "public", **fields}
        return await self.ok("POST", "/repository", body)

    async def grant(self, username: str, repository: str, *actions: str) -> None:
        await self.ok(
            "PUT",
            f"/users/{username}/permissions",
            {"repositories": [{"repository": repository, "actions": list(actions)}]},
        )

    async def token(self, who: str = "admin", **fields: Any) -> str:
        made = await self.ok("POST", "/user/token", {"name": "test", **fields}, who=who)
        return str(made["token"])

    async def bearer(self, who: str | None = "admin", scope: str = "") -> str:
        """A bearer token of the token service."""
        return str((await self.ok("GET", f"/auth/token?scope={scope}", who=who))["token"])

    async def publish(self, repository: str, name: str, version: str, *, sdist: bool = False, **fields: Any) -> str:
        """Upload a small distribution; its file name."""
        filename, data = (make_sdist if sdist else make_wheel)(name, version, **fields)
        path = f"/repositories/{repository}/{name}/{version}/{quote(filename)}"
        reply = await self.call("PUT", path, raw=data)
        assert reply.status == 201, reply.body
        return filename

    async def audited(self, **filters: str) -> list[Any]:
        """Rows of the audit log, the newest first."""
        query = "&".join(f"{name}={quote(value)}" for name, value in filters.items())
        items: list[Any] = (await self.ok("GET", f"/audit?{query}"))["items"]
        return items


@asynccontextmanager
async def running_stacks(folder: Path) -> AsyncIterator[Callable[..., Awaitable[Stack]]]:
    """Starts servers, ``await make(section__key=value)``, and stops them at the end; nothing may fail in the log."""
    stacks: list[Stack] = []

    async def make(**overrides: Any) -> Stack:
        stacks.append(Stack(folder / str(len(stacks)), **overrides))
        await stacks[-1].start()
        return stacks[-1]

    with no_failures():
        yield make
        for stack in stacks:
            await stack.stop()

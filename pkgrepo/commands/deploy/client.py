"""
Sends a bundle to a server, and waits until it is published.

Sending is repeated when the connection breaks: the same files again change nothing, so a bundle that had arrived
already does no harm. Once the server has answered with the id of the deployment, only its state is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec
from attrs import frozen
from treq.client import HTTPClient
from twisted.internet.task import deferLater
from twisted.web.client import Agent
from twisted.web.http_headers import Headers
from twisted.web.iweb import IBodyProducer

from pkgrepo.commands.http.bodies import IteratorBody
from pkgrepo.commands.http.failures import BROKEN, Failed, is_certificate_error, reason_of

T = TypeVar("T")

CONNECT_S: Final = 30.0
ATTEMPTS: Final = 4
FIRST_PAUSE_S: Final = 1.0  # before the second attempt; doubled before each further one
POLL_S: Final = 0.2  # before the state is asked again; grows to ``MOST_POLL_S``
MOST_POLL_S: Final = 5.0
ANSWER_SIZE: Final = 4 * 1024 * 1024  # bytes
RUNNING: Final = ("PENDING", "VALIDATING", "PUBLISHING")


@frozen
class Target:
    """Where and how artifacts are deployed; ``url`` is that of the repository, without a slash at its end."""

    url: str
    authorization: str
    name: str = ""
    automatic: bool = True


class DeployClient:
    """Deploys bundles to one repository."""

    def __init__(self, reactor: Any, target: Target) -> None:
        self._reactor = reactor
        self._target = target
        self._http = HTTPClient(Agent(reactor, connectTimeout=CONNECT_S))

    async def deploy(self, pieces: Callable[[], Iterator[bytes]], on_state: Callable[[str], None]) -> dict[str, Any]:
        """
        Send a bundle, whose bytes a new iterator brings for each attempt, and wait. Returns the last status.

        ``on_state`` is called with each state.

        :raises Failed: the server refused it, or was not reached
        """
        query = {"publishing_type": "AUTOMATIC" if self._target.automatic else "USER_MANAGED"}
        if self._target.name:
            query["name"] = self._target.name
        address = f"{self._target.url}/deploy?{urlencode(query)}"
        begun = await self._repeat(lambda: self._send(address, pieces))
        uid = begun.get("deployment_id")
        if not isinstance(uid, str):
            raise Failed("the server's answer has no id of a deployment; is this the address of a Maven repository?")
        return await self._wait(uid, on_state)

    async def _send(self, address: str, pieces: Callable[[], Iterator[bytes]]) -> Any:
        body = IteratorBody(pieces(), self._reactor)
        try:
            return await self._ask("POST", address, body)
        except Exception:
            if body.error is not None:  # a file could not be read
                raise Failed(str(body.error)) from None
            raise
        finally:
            body.stopProducing()

    async def _wait(self, uid: str, on_state: Callable[[str], None]) -> dict[str, Any]:
        pause, told = POLL_S, ""
        while True:
            found: dict[str, Any] = await self._repeat(lambda: self._ask("GET", f"{self._target.url}/deploy/{uid}"))
            state = str(found.get("state"))
            if state != told:
                on_state(state)
                told = state
            if state not in RUNNING and not (state == "VALIDATED" and self._target.automatic):
                return found
            await deferLater(self._reactor, pause)
            pause = min(pause * 1.5, MOST_POLL_S)

    async def _repeat(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The result of an attempt, repeated while the connection breaks or the server is overloaded."""
        pause = FIRST_PAUSE_S
        for left in reversed(range(ATTEMPTS)):
            try:
                return await attempt()
            except Failed as error:
                if error.status != 503 or not left:
                    raise
            except BROKEN as error:
                if not left or is_certificate_error(error):
                    raise Failed(f"{self._target.url} cannot be reached: {reason_of(error)}") from None
            await deferLater(self._reactor, pause)
            pause *= 2
        raise AssertionError("the last attempt returns or raises")

    async def _ask(self, method: str, address: str, body: IBodyProducer | None = None) -> Any:
        headers = Headers({"Accept": ["application/json"], "Authorization": [self._target.authorization]})
        if body is not None:
            headers.setRawHeaders("Content-Type", ["application/zip"])
        response = await self._http.request(method, address, data=body, headers=headers, allow_redirects=False)
        parts: list[bytes] = []

        def collect(data: bytes) -> None:
            parts.append(data)
            if sum(map(len, parts)) > ANSWER_SIZE:
                raise Failed("the server's answer is too long")

        await response.collect(collect)
        value = _decode(b"".join(parts))
        if response.code >= 300:
            phrase = response.phrase.decode("latin-1")
            sentence = str(value.get("detail") or phrase) if isinstance(value, dict) else phrase
            raise Failed(f"{response.code} {sentence}", response.code)
        return value if isinstance(value, dict) else {}


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None

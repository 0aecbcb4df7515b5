"""An HTTP server in a thread, whose answers are documents and scripted faults, and which records all requests."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from attrs import define, field

from tests.support.ports import reserve_port
from tests.support.timeouts import TIMEOUT_S
from tests.support.upstreams.connection import ClientLeft, Connection
from tests.support.upstreams.messages import Answer, Request, Step, take

ANY = "*"
UNKNOWN = Answer(404, b"not found", {"Content-Type": "text/plain"})


@define(eq=False)
class Exchange:
    """
    A request and what has been sent of its answer so far.

    C{connection} numbers connections from 1. C{sent} counts bytes of the body. C{ended} is empty until the exchange
    ends, then C{complete}, C{cut} by the server, or C{left} by the client.
    """

    request: Request
    connection: int
    status: int = 0
    sent: int = 0
    paused: bool = False
    ended: str = ""


@define(eq=False)
class _Script:
    steps: deque[Step] = field(factory=deque)
    repeat: bool = False

    def next(self) -> Step | None:
        if not self.steps:
            return None
        return self.steps[0] if self.repeat and len(self.steps) == 1 else self.steps.popleft()


class ScriptedUpstream:
    """
    A server of documents; subclasses override L{answer}. Use as a context manager, or call L{start} and L{stop}.

    C{port} is a free one unless it is given. Documents are keyed by raw paths, without a query. C{latency_s} delays
    every answer, C{authorization} is the value of Authorization that every request needs; both may be changed at any
    time.
    """

    def __init__(
        self,
        documents: Mapping[str, Answer | bytes] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        latency_s: float = 0,
        authorization: str | None = None,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self.latency_s = latency_s
        self.authorization = authorization
        self.exchanges: list[Exchange] = []
        self.connections = 0  # so far
        self.documents: dict[str, Answer] = {}
        self.dynamic: dict[str, Callable[[Request], Answer]] = {}  # paths whose answers depend on the request
        self._scripts: dict[str, _Script] = {}
        self._changed = threading.Condition()
        self._certificate = certificate
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._gates: dict[str, asyncio.Event] = {}
        self._released: set[str] = set()  # paths whose answers were released before they paused
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._leave: asyncio.Event | None = None
        for path, document in (documents or {}).items():
            self.serve(path, document)

    # --- the test's side

    @property
    def url(self) -> str:
        """The address without a slash at the end. It stays the same when the server is stopped and started again."""
        return f"{'https' if self._certificate else 'http'}://{self.host}:{self.port}"

    def start(self) -> Self:
        """Listen; on the same port as before if it was started before."""
        if self.port == 0:
            self.port, reserved = reserve_port()
            weakref.finalize(self, reserved.close)
        listener = socket.create_server((self.host, self.port), backlog=512)
        listening = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(listener, listening)), daemon=True)
        self._thread.start()
        assert listening.wait(TIMEOUT_S)
        return self

    def stop(self) -> None:
        """Close all connections and the port; clients' next connections are refused."""
        if self._thread is not None and self._loop is not None and self._leave is not None:
            self._loop.call_soon_threadsafe(self._leave.set)
            self._thread.join(TIMEOUT_S)
            self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def serve(self, path: str, document: Answer | bytes) -> None:
        """Answer requests for a path with this from now on."""
        self.documents[path] = document if isinstance(document, Answer) else Answer(body=document)

    def misbehave(self, path: str, *steps: Step, repeat: bool = False) -> None:
        """
        Answer the next requests for a path by these steps, one each, and then regularly again.

        With C{repeat} the last step answers all further requests. L{ANY} stands for every path without a script.
        """
        self._scripts[path] = _Script(deque(steps), repeat)

    def behave(self) -> None:
        """Answer everything regularly again, and release what is paused."""
        self._scripts.clear()
        with self._changed:
            for path in list(self._gates):
                self.release(path)

    def release(self, path: str) -> None:
        """
        Continue the answers for a path that are paused. If there is none, the next one does not pause.

        A client may have the bytes before a pause, and a test may see them, before the answer pauses.
        """
        assert self._loop is not None
        with self._changed:
            gate = self._gates.pop(path, None)
            if gate is None:
                self._released.add(path)
            else:
                self._loop.call_soon_threadsafe(gate.set)

    def drop_idle(self) -> None:
        """Close all open connections, without an announcement; the port stays open."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._abort_all)

    def requests(self, path: str | None = None) -> list[Request]:
        """The requests so far, in order."""
        return [each.request for each in self.exchanges_of(path)]

    def count(self, path: str | None = None) -> int:
        """How many requests came so far."""
        return len(self.exchanges_of(path))

    def sent(self, path: str | None = None) -> int:
        """How many bytes of bodies were sent so far."""
        return sum(each.sent for each in self.exchanges_of(path))

    def exchanges_of(self, path: str | None) -> list[Exchange]:
        """The exchanges so far for one path, or all."""
        with self._changed:
            return [each for each in self.exchanges if path is None or each.request.path == path]

    def forget(self) -> None:
        """Forget all exchanges so far."""
        with self._changed:
            self.exchanges = []
            self._released.clear()

    def wait_for(self, true: Callable[[], bool]) -> None:
        """Block until a condition holds, which is evaluated whenever an exchange changes."""
        with self._changed:
            assert self._changed.wait_for(true, TIMEOUT_S), "the upstream saw nothing of the kind"

    def wait_paused(self, path: str | None = None, count: int = 1) -> None:
        """Block until so many answers for a path, or for any, are paused."""
        self.wait_for(lambda: sum(each.paused for each in self.exchanges_of(path)) >= count)

    # --- the server's side, in its thread

    def answer(self, request: Request) -> Answer:
        """Return the regular answer."""
        return self.documents.get(request.path, UNKNOWN)

    async def _run(self, listener: socket.socket, listening: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._leave = asyncio.Event()
        context = None
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self._certificate)
        server = await asyncio.start_server(self._connected, sock=listener, ssl=context, limit=1 << 20)
        listening.set()
        await self._leave.wait()
        server.close()
        self._abort_all()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _abort_all(self) -> None:
        for writer in self._open.values():
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        self.connections += 1
        connection = Connection(reader, writer)
        number = self.connections
        try:
            while (request := await connection.read_request()) is not None:
                exchange = Exchange(request, number)
                with self._noting():
                    self.exchanges.append(exchange)
                if not await self._exchange(connection, exchange):
                    break
        except (ClientLeft, OSError, asyncio.CancelledError):
            pass
        finally:
            del self._open[task]
            writer.close()

    async def _exchange(self, connection: Connection, exchange: Exchange) -> bool:
        """Answer a request; whether the connection can be used for another one."""
        path = exchange.request.path
        try:
            answer = self._choose(exchange.request)
            if delay_s := self.latency_s + answer.fault.latency_s:
                await asyncio.sleep(delay_s)
            async for sent in connection.send(exchange.request, answer):
                gate = None
                with self._noting():
                    if sent is None and path in self._released:
                        self._released.remove(path)
                    elif sent is None:  # there is a gate when others see that the exchange is paused, and release it
                        gate = self._gates.setdefault(path, asyncio.Event())
                    exchange.status = connection.status
                    exchange.sent += sent or 0
                    exchange.paused = gate is not None
                if gate is not None:
                    await connection.wait(gate)
        except (ClientLeft, OSError):
            with self._noting():
                exchange.ended, exchange.paused = "left", False
            raise
        with self._noting():
            exchange.ended = "complete" if connection.complete else "cut"
            exchange.paused = False
        return connection.reusable

    def _choose(self, request: Request) -> Answer:
        for path in (request.path, ANY):
            script = self._scripts.get(path)
            step = None if script is None else script.next()
            if step is not None:
                return take(step, lambda: self._regular(request))
        return self._regular(request)

    def _regular(self, request: Request) -> Answer:
        if self.authorization is not None and request.fields.get("authorization") != self.authorization:
            return Answer(401, b"credentials are needed", {"WWW-Authenticate": 'Basic realm="upstream"'})
        make = self.dynamic.get(request.path)
        return self.answer(request) if make is None else make(request)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Change exchanges, and wake those who wait for changes."""
        with self._changed:
            yield
            self._changed.notify_all()


@contextmanager
def unaccepting_port() -> Iterator[int]:
    """A port at which packets of new connections are dropped, because its backlog is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as stack:
        address = listener.getsockname()
        for _ in range(3):  # Linux takes one more than the backlog
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        yield address[1]


@contextmanager
def fresh(*upstreams: ScriptedUpstream) -> Iterator[None]:
    """Let upstreams forget their exchanges, and behave again afterwards."""
    for each in upstreams:
        each.forget()
    yield
    for each in upstreams:
        each.behave()

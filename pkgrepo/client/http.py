"""HTTP of the command line: addresses and tokens that people give, bodies of requests, timeouts, refusals."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from twisted.internet import error as internet_error
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IConsumer
from twisted.internet.task import CooperativeTask, Cooperator, TaskStopped
from twisted.python.failure import Failure
from twisted.web.client import RequestTransmissionFailed, ResponseFailed, ResponseNeverReceived
from twisted.web.iweb import UNKNOWN_LENGTH, IBodyProducer
from zope.interface import implementer

from pkgrepo.client.terminal import EXIT_CODES, printable
from pkgrepo.errors import Conflict, Forbidden, Invalid, NotFound, PkgrepoError

T = TypeVar("T")

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

# The connection broke, or there was none.
BROKEN: Final = (
    internet_error.ConnectError,
    internet_error.ConnectionLost,
    internet_error.ConnectionDone,
    internet_error.DNSLookupError,
    RequestTransmissionFailed,
    ResponseFailed,
    ResponseNeverReceived,
    OSError,
)

# What OpenSSL 1.1 to 3.5 say of bytes that are no TLS.
NO_TLS: Final = ("wrong version number", "unknown protocol", "packet length too long", "record layer failure")

_CODES: Final = {
    400: EXIT_CODES[Invalid],
    401: EXIT_CODES[Forbidden],
    403: EXIT_CODES[Forbidden],
    404: EXIT_CODES[NotFound],
    405: EXIT_CODES[Forbidden],
    409: EXIT_CODES[Conflict],
    410: EXIT_CODES[NotFound],
    412: EXIT_CODES[Conflict],
    413: EXIT_CODES[Invalid],
    415: EXIT_CODES[Invalid],
    422: EXIT_CODES[Invalid],
    423: EXIT_CODES[Conflict],
}


class Failed(PkgrepoError):  # noqa: N818 - named for what happened
    """
    The server refused the request, or was not reached; ``status`` is the HTTP status, 0 without a response.

    ``page`` is the path of the page of the server that helps, if it names one.
    """

    def __init__(self, sentence: str, status: int = 0, page: str = "") -> None:
        super().__init__(sentence)
        self.status = status
        self.page = page


class Unreachable(Failed):
    """There was no connection, or it broke; ``again`` is whether another attempt may succeed."""

    def __init__(self, url: str, error: BaseException) -> None:
        super().__init__(f"{url} cannot be reached: {reason_of(error)}")
        self.again = not is_certificate_error(error)


def exit_code(status: int) -> int:
    """The exit code of a command after a refusal with this HTTP status, 0 if there was no response."""
    return _CODES.get(status, 1)


def is_certificate_error(error: BaseException) -> bool:
    """Whether the server's certificate was refused, or it does not speak TLS, so that trying again is useless."""
    found = _causes(error)
    names = {type(each).__name__ for each in found}
    return bool(names & {"VerificationError", "CertificateError"}) or any(
        isinstance(each, ssl.SSLError) or type(each).__module__.startswith("OpenSSL") for each in found
    )


def reason_of(error: BaseException) -> str:
    """The reason of a broken connection, in words."""
    if is_certificate_error(error):
        said = " ".join(str(each) for each in _causes(error))
        if any(each in said for each in NO_TLS):
            return "it does not speak TLS: is its address one with http:?"
        return "its certificate cannot be verified"
    last = _causes(error)[-1]
    return str(last) or type(last).__name__


def raise_if_cancelled(error: BaseException) -> None:
    """
    Raise CancelledError if that broke a connection: Twisted wraps it in what became of the request.

    :raises CancelledError: the request was cancelled, by a timeout or by SIGINT
    """
    if any(isinstance(each, CancelledError) for each in _causes(error)):
        raise CancelledError from None


def _causes(error: BaseException) -> list[BaseException]:
    found = [each.value for each in getattr(error, "reasons", None) or () if each.value is not None]
    return [error, *(cause for each in found for cause in _causes(each))]


def read_token(path: Path) -> str:
    """The token in a file. :raises Invalid: the file holds no token; :raises OSError: the file cannot be read"""
    try:
        return check_token(path.read_text().strip(), str(path))
    except UnicodeDecodeError:
        raise Invalid(f"there is no token in {path}") from None


def check_token(token: str, where: str) -> str:
    """The token. :raises Invalid: it is empty, or has characters that cannot be sent"""
    if not token:
        raise Invalid(f"there is no token in {where}")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise Invalid("the token has characters that no token has")
    return token


def parse_address(url: str, kind: str, option: str) -> str:
    """
    The address without slashes at its end.

    ``kind`` is what it should be the address of, with an example, ``option`` where it comes from: for the message.

    :raises Invalid: it is no such address, or has credentials
    """
    try:
        parts = urlsplit(url)
        has_credentials = "@" in parts.netloc
        is_one = parts.port is None or parts.port > 0
    except ValueError:
        is_one, has_credentials = False, "@" in url
    if has_credentials:
        raise Invalid(f"credentials do not belong into {option}: other users can see them")
    if not is_one or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Invalid(f"{printable(url)} is no address of {kind}")
    return url.rstrip("/")


def is_plain(url: str) -> bool:
    """Whether credentials that are sent to this address can be read on their way."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK


@implementer(IBodyProducer)
class IteratorBody:
    """
    The body of a request, read from an iterator while it is sent. An error of the iterator is kept as ``error``.

    ``length`` is in bytes; without it, the body is sent in chunks. ``on_piece`` is called after each piece.
    """

    def __init__(self, pieces: Iterator[bytes], reactor: Any, length: int | None = None) -> None:
        self.length = UNKNOWN_LENGTH if length is None else length
        self.error: Exception | None = None
        self.on_piece: Callable[[], None] | None = None
        self._pieces = pieces
        self._cooperator = Cooperator(scheduler=lambda call: reactor.callLater(0, call))
        self._task: CooperativeTask[Iterator[None]] | None = None

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        """Send all pieces; fires after the last one."""
        task = self._task = self._cooperator.cooperate(self._write(consumer))
        done: Deferred[None] = Deferred()

        def ended(result: object) -> None:
            if isinstance(result, Failure):
                if result.check(TaskStopped):
                    return
                self.error = result.value if isinstance(result.value, Exception) else None
                done.errback(result)
            else:
                done.callback(None)

        task.whenDone().addBoth(ended)
        return done

    def pauseProducing(self) -> None:
        """Wait until the connection takes more."""
        if self._task is not None:
            self._task.pause()

    def resumeProducing(self) -> None:
        """Go on."""
        if self._task is not None:
            self._task.resume()

    def stopProducing(self) -> None:
        """End, and close the file that is being read; may be called more than once."""
        if self._task is not None:
            try:
                self._task.stop()
            except Exception:  # noqa: BLE001 - it has ended already
                self._task = None
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()

    def _write(self, consumer: IConsumer) -> Iterator[None]:
        for piece in self._pieces:
            consumer.write(piece)
            if self.on_piece is not None:
                self.on_piece()
            yield


class IdleTimeout:
    """Cancels work that makes no progress for ``seconds``; a long transfer that goes on is never cancelled."""

    def __init__(self, reactor: Any, seconds: float) -> None:
        self._seconds = seconds
        self._timer = reactor.callLater(seconds, self._expire)
        self._work: Deferred[Any] | None = None
        self._expired = False

    def progress(self) -> None:
        """Begin to wait anew."""
        if self._timer.active():
            self._timer.reset(self._seconds)

    async def watch(self, work: Coroutine[Deferred[Any], Any, T]) -> T:
        """What the work returns. :raises Failed: it made no progress"""
        self._work = Deferred.fromCoroutine(work)
        try:
            return await self._work  # type: ignore[no-any-return]
        except CancelledError:
            if not self._expired:
                raise
            raise Failed(f"the server has sent and taken nothing for {self._seconds:g} seconds") from None
        finally:
            if self._timer.active():
                self._timer.cancel()

    def _expire(self) -> None:
        self._expired = True
        if self._work is not None:
            self._work.cancel()

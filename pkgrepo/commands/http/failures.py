"""Why a request failed: the server refused it, or was not reached."""

from __future__ import annotations

import ssl
from typing import Final

from twisted.internet import error as internet_error
from twisted.web.client import RequestTransmissionFailed, ResponseFailed, ResponseNeverReceived

from pkgrepo.commands.exits import EXIT_CODES
from pkgrepo.errors import Conflict, Forbidden, Invalid, NotFound, PkgrepoError

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
    """The server refused the request, or was not reached; ``status`` is the HTTP status, 0 without a response."""

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


def exit_code(status: int) -> int:
    """The exit code of a command after a refusal with this HTTP status, 0 if there was no response."""
    return _CODES.get(status, 1)


def is_certificate_error(error: BaseException) -> bool:
    """Whether the server's certificate was refused, so that trying again is useless."""
    found = _causes(error)
    names = {type(each).__name__ for each in found}
    return bool(names & {"VerificationError", "CertificateError"}) or any(
        isinstance(each, ssl.SSLError) or type(each).__module__.startswith("OpenSSL") for each in found
    )


def reason_of(error: BaseException) -> str:
    """The reason of a broken connection, in words."""
    if is_certificate_error(error):
        return "its certificate cannot be verified"
    last = _causes(error)[-1]
    return str(last) or type(last).__name__


def _causes(error: BaseException) -> list[BaseException]:
    found = [each.value for each in getattr(error, "reasons", None) or () if each.value is not None]
    return [error, *(cause for each in found for cause in _causes(each))]

"""Errors of the API, as problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from attrs import define

from pkgrepo import errors
from pkgrepo.gateway.refusals import STATUSES, refusal_headers
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import JSON, NO_STORE, Refusal, Response, json_response, text_response
from pkgrepo.model.structs import meaning

PROBLEM = b"application/problem+json"
TOKEN_SERVICE = frozenset({b"/api/auth/token", b"/v2/token", b"/token"})
REALM = b'Basic realm="pkgrepo", charset="UTF-8"'

# Title and explanation by code; the code is the last segment of the problem's type URL.
PROBLEM_TYPES: Mapping[str, tuple[str, str]] = {
    "malformed": ("Malformed request", "The body is not JSON, or the address cannot be read."),
    "invalid": (
        "Invalid value",
        "A field has a value that it may not have, is missing, or is unknown. Each entry of errors points at one.",
    ),
    "unauthorized": (
        "Authentication required",
        "Send Basic credentials, an access token or a bearer token in the Authorization field.",
    ),
    "second_factor_required": (
        "A code is missing",
        "The account has a second factor: send a one-time password in the header field OTP, or use an access token.",
    ),
    "second_factor_missing": (
        "A second factor is needed",
        "The account must have a second factor to log in with its password (auth.second_factor): set it up first.",
    ),
    "forbidden": ("Not allowed", "The caller is known and lacks the permission, or the token lacks the scope."),
    "cross_site": ("Cross-site request", "A page of another site must not change anything here."),
    "not_found": ("Not found", "Nothing is there, or nothing that the caller may know of."),
    "method_not_allowed": ("Method not allowed", "The Allow field lists what this address takes."),
    "already_exists": ("Already exists", "The name is taken."),
    "file_exists": ("File exists", "A published file keeps its content."),
    "conflict": ("Conflict", "The request contradicts the present state."),
    "stale": ("Stale", "The resource has changed since the ETag in If-Match was given out; read it again."),
    "too_large": ("Too large", "The body is longer than the limit."),
    "too_many_attempts": ("Too many attempts", "Too many failed logins; the Retry-After field says when to come back."),
    "too_many_streams": ("Too many streams", "A caller, or all together, have as many streams as there may be."),
    "expired": ("Expired", "What was named had an end and is past it."),
    "position_lost": (
        "Position lost",
        "The log of events does not have the event any more after which the caller wants to go on.",
    ),
    "inactive": ("Repository switched off", "The repository is not active; its editors can switch it on."),
    "read_only": ("Read-only", "The repository takes no uploads."),
    "storage_full": ("Storage full", "The storage has no room left."),
    "storage_failed": ("Storage failed", "The storage cannot be read or written now."),
    "digest_mismatch": ("Digest mismatch", "The bytes received are not the bytes announced."),
    "size_mismatch": ("Size mismatch", "Fewer or more bytes came than were announced."),
    "blob_missing": ("Stored bytes missing", "The catalog names bytes that the storage has lost; see pkgrepo verify."),
    "upstream_failed": ("Upstream failed", "The upstream of a proxy repository gave no usable answer."),
    "upstream_unavailable": ("Upstream not available", "The upstream of a proxy repository cannot be reached."),
    "upstream_limited": (
        "Upstream limits requests",
        "The upstream of a proxy repository wants no requests for a while.",
    ),
    "upstream_timeout": ("Upstream too slow", "The upstream of a proxy repository did not answer in time."),
    "identity_refused": (
        "Identity token refused",
        "The identity token is not valid, was exchanged before, or fits no publisher of the repository.",
    ),
    "issuer_unavailable": ("Issuer not available", "The issuer of identity tokens gave no usable answer."),
    "unavailable": ("Not available", "A part of the server is not ready."),
    "internal_error": ("Internal error", "The server's log has the reason, under the request id in instance."),
}

_BY_STATUS = {
    400: "malformed",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    422: "invalid",
    500: "internal_error",
}


@define
class PreconditionFailed(errors.PkgrepoError):
    """If-Match does not match the current ETag."""

    current: str

    def __str__(self) -> str:
        return f"the resource has changed; its ETag is now {self.current}"


class FaultRecord(msgspec.Struct, kw_only=True, frozen=True):
    """One error of the request."""

    pointer: Annotated[str, meaning("A JSON pointer into the body, or the name of a query parameter.")]
    code: Annotated[str, meaning("The kind of error, for programs.")]
    message: Annotated[str, meaning("What is wrong, for people.")]


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Problem details (RFC 9457); instance is the id of the request."""

    type: Annotated[str, meaning("The address of the page that explains the problem.")]
    title: Annotated[str, meaning("The kind of problem, in words.")]
    status: Annotated[int, meaning("The HTTP status.")]
    detail: Annotated[str, meaning("A sentence about what was wrong in this request.")]
    instance: Annotated[str, meaning("The id of the request, which is in the server's log.")]
    errors: Annotated[list[FaultRecord], meaning("The errors of single fields.")] = []


def invalid(error: errors.Invalid) -> Refusal:
    """The refusal (422) of an invalid value, with the pointer to it."""
    return Refusal(
        422,
        error.message,
        "invalid",
        errors=(FaultRecord(pointer=error.pointer, code="invalid", message=error.message),),
    )


def render_problem(request: Request, refusal: Refusal) -> Response:
    """A refusal as problem details."""
    code = _code(refusal)
    title, _ = PROBLEM_TYPES[code]
    problem = Problem(
        type=f"{request.base_url}/problems/{code}",
        title=title,
        status=refusal.status,
        detail=refusal.sentence,
        instance=request.request_id,
        errors=[fault for fault in refusal.errors[: errors.MOST_ERRORS] if isinstance(fault, FaultRecord)],
    )
    content_type = PROBLEM
    if request.raw_path.rstrip(b"/") in TOKEN_SERVICE:
        # container clients print the message of the first error, and read only application/json
        content_type = JSON
        problem.errors.append(FaultRecord(pointer="", code=code.upper(), message=refusal.sentence))
    return json_response(
        problem,
        refusal.status,
        content_type=content_type,
        headers=(*refusal_headers(refusal, REALM), *NO_STORE),
    )


def _code(refusal: Refusal) -> str:
    code = refusal.code.lower()
    if code in PROBLEM_TYPES:
        return code
    known = _BY_STATUS.get(refusal.status)
    if known is None:
        return "internal_error" if refusal.status >= 500 else "malformed"
    return known


class ProblemTable(ErrorTable):
    """Maps domain errors to problem details."""

    def __init__(self) -> None:
        super().__init__({**STATUSES, PreconditionFailed: (412, "stale")}, render_problem)

    def answer(self, request: Request, error: BaseException) -> Response:
        """The problem of an error; an invalid value has the pointer to it."""
        return super().answer(request, invalid(error) if isinstance(error, errors.Invalid) else error)


ERRORS = ProblemTable()


def problem_page(code: str) -> Response:
    """
    The explanation of a problem type, as text.

    :raises NotFound: there is no such type
    """
    if code not in PROBLEM_TYPES:
        raise errors.NotFound("problem", code)
    title, explanation = PROBLEM_TYPES[code]
    return text_response(f"{title}\n\n{explanation}\n")

"""Uploads from request bodies: limits from the head, bytes from the body."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, TypeVar

from attrs import evolve

from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import PkgrepoError, TooLarge
from pkgrepo.http.answers import Refusal
from pkgrepo.http.reading.body import Body, BodyLost
from pkgrepo.http.request import Request
from pkgrepo.interfaces import IBlobUpload
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.staged import Staged

T = TypeVar("T")

UPLOADS: Final = (b"PUT", b"POST")  # the methods of all clients' uploads


def misplaced_upload(base_url: str, request: Request, refusal: Refusal, advice: str) -> Refusal:
    """
    ``refusal`` of a request to an address of a repository that does not take it.

    If it is an upload, ``advice`` is added, with the repository's address for ``{}``: clients print little but the
    sentence. That address is below ``base_url`` and as in the request, so that no target of a virtual repository is
    named.
    """
    if request.method not in UPLOADS:
        return refusal
    path = b"/".join(request.raw_path.split(b"/")[:4]).decode("ascii", "replace")
    return evolve(refusal, sentence=f"{refusal.sentence}; {advice.format(base_url + path)}")


def check_declared_length(request: Request, limit: int) -> None:
    """
    Check that the request announces at most ``limit`` bytes.

    :raises TooLarge: before a byte of the body has been asked for
    """
    if request.body.declared is not None and request.body.declared > limit:
        raise TooLarge(limit)


async def receive_body(
    request: Request,
    staged: Staged,
    *,
    limit: int,
    algorithms: Sequence[str] = (),
    expected: Mapping[str, str] | None = None,
) -> BlobInfo:
    """
    The whole request body as a staged blob.

    :raises TooLarge, DigestMismatch, StorageFull, StorageFailed: nothing is kept then
    """
    check_declared_length(request, limit)
    return await staged.receive(
        request.body,
        limit=limit,
        expect_size=request.body.declared,
        algorithms=algorithms,
        expected=expected,
    )


async def write_body(body: Body, upload: IBlobUpload) -> BodyLost | None:
    """Write a request's body to an upload; if the client leaves before its end, that is returned, not raised."""
    try:
        async for chunk in body:
            upload.write(chunk)
            await upload.drained()
    except BodyLost as lost:
        return lost
    return None


async def finish_without_client(work: Awaitable[T]) -> T:
    """
    The result of ``work``, which is not cancelled when the client leaves: what has arrived is kept for its return.

    Refusals are for the client alone, so that none is logged once the client has left.
    """

    async def run() -> tuple[T | None, Exception | None]:
        try:
            return await work, None
        except (PkgrepoError, Refusal) as error:
            return None, error

    result, error = await shield(run())
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # None only where T is

"""The one upload path on its HTTP side: limits from the head, bytes from the body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pkgrepo.errors import TooLarge
from pkgrepo.http.request import Request
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.staged import Staged


def check_length(request: Request, limit: int) -> None:
    """
    Refuse by the head alone what announces more than ``limit`` bytes.

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
    check_length(request, limit)
    return await staged.receive(
        request.body,
        limit=limit,
        expect_size=request.body.declared,
        algorithms=algorithms,
        expected=expected,
    )

"""
What processes tell each other about transfers.

The leader is the process that fetches a file. A follower has readers of the same file.

============  ===========  ===========================================================================================
notice        from         meaning
============  ===========  ===========================================================================================
``Wanted``    a follower   it has readers; sent again while it waits, since leaders change
``Alive``     the leader   it has heard that the file is wanted
``Left``      a follower   it has no readers any more
``Growing``   the leader   what of the file may be read, and where; again whenever it has grown
``Verified``  the leader   all of it may be read
``Ended``     the leader   it is recorded, or was given up, or failed; its lease is free
============  ===========  ===========================================================================================

Only processes that can open the leader's files get ``Growing``; all processes get the others. A notice may be lost.
Followers try to get the lease from time to time, so the loss of any delays them only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast

import attrs
import msgspec

from pkgrepo.errors import (
    NotFound,
    PkgrepoError,
    StorageFailed,
    StorageFull,
    TooManyOpenFiles,
    UpstreamDenied,
    UpstreamFailed,
    UpstreamForbiddenAddress,
    UpstreamLimited,
    UpstreamLoop,
    UpstreamMisconfigured,
    UpstreamMismatch,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamTruncated,
    UpstreamUnavailable,
)

Place = tuple[int, str]  # id of a repository, and the path of a file in it with its identity, see L{Transfers.get}

# Any other error makes a follower fetch the file itself, and have an error of its own.
_ERRORS: Final[Mapping[str, type[PkgrepoError]]] = {
    each.__name__: each
    for each in (
        NotFound,
        StorageFailed,
        StorageFull,
        TooManyOpenFiles,
        UpstreamDenied,
        UpstreamFailed,
        UpstreamForbiddenAddress,
        UpstreamLimited,
        UpstreamLoop,
        UpstreamMisconfigured,
        UpstreamMismatch,
        UpstreamTimeout,
        UpstreamTooLarge,
        UpstreamTruncated,
        UpstreamUnavailable,
    )
}


class Notice(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A notice about the transfer of the file at ``place``."""

    place: Place


class Wanted(Notice, frozen=True):
    """``follower`` is the name of the process."""

    follower: str


class Left(Notice, frozen=True):
    """``follower`` is the name of the process."""

    follower: str


class Alive(Notice, frozen=True):
    """It has the lease still."""


class Growing(Notice, frozen=True):
    """
    The first ``readable`` bytes of the file are in the exposed upload ``upload``, see L{IGrowingFiles}.

    ``size``, ``etag``, ``is_plain`` and ``fields`` are from the first response, see L{Origin}; ``source`` is for
    L{Download.adopt}.
    """

    upload: str
    readable: int
    size: int
    etag: str | None
    is_plain: bool
    fields: dict[str, str]
    source: dict[str, Any]


class Verified(Notice, frozen=True):
    """The file of ``upload`` has these digests, and may be read to its end."""

    upload: str
    sha256: str
    size: int
    locator: str
    digests: dict[str, str]
    source: dict[str, Any]


class Ended(Notice, frozen=True):
    """
    Its lease is free.

    ``verified`` is what was recorded, if something was. ``error`` is what its readers get; without it they look for the
    file, or fetch it.
    """

    verified: Verified | None
    error: tuple[str, list[Any]] | None


class Notices(Protocol):
    """Where notices for other processes go. With ``has_near`` some may be able to open the files of this one."""

    has_near: bool

    def send(self, data: bytes) -> None:
        """Send an encoded notice to all of them."""

    def send_near(self, data: bytes) -> None:
        """Send an encoded notice to those that can open the files of this process."""


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Wanted | Left | Alive | Growing | Verified | Ended).decode


def encode_error(error: BaseException) -> tuple[str, list[Any]] | None:
    """An error that followers get as well, or None."""
    name, kind = type(error).__name__, cast("Any", type(error))
    return (name, list(attrs.astuple(cast("Any", error)))) if _ERRORS.get(name) is kind else None


def decode_error(error: tuple[str, Sequence[Any]]) -> PkgrepoError | None:
    """The error, or None if it is of another version of this program."""
    kind = _ERRORS.get(error[0])
    try:
        return None if kind is None else kind(*error[1])
    except TypeError:
        return None

"""
Refusals of callers who may not know of a repository.

The refusal is the same whether there is such a repository or not, and takes the same time.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from pkgrepo.errors import PkgrepoError
from pkgrepo.gateway.answers.refusals import refusal_answer
from pkgrepo.gateway.answers.statuses import STATUSES
from pkgrepo.gateway.callers.access import Access, unknown
from pkgrepo.gateway.callers.session_cookies import session_secret
from pkgrepo.http.answering.prepared import PreparedAnswer
from pkgrepo.http.answers import Refusal
from pkgrepo.http.request import Request
from pkgrepo.model import ANONYMOUS, Identity

from .mounts import Mounts, split

MOST_KEPT: Final = 1000  # answers; about 2 MB
LONGEST_KEPT: Final = 210  # bytes of storage and repository, none of which has a longer name


def unknown_place(identity: Identity, place: tuple[bytes, bytes, bytes]) -> PkgrepoError:
    """The error for the repository of a split path; it repeats the caller's spelling."""
    return unknown(identity, unquote("/".join(part.decode("latin-1") for part in place[:2])))


class Strangers:
    """
    Refuses reads without credentials that need some, from memory.

    Maven asks for each file without credentials first, so this is as frequent as downloads.
    """

    def __init__(self, mounts: Mounts, access: Access) -> None:
        self._mounts = mounts
        self._access = access
        self._kept: dict[tuple[bytes, bytes], PreparedAnswer] = {}

    def refuse_now(self, request: Request) -> PreparedAnswer | None:
        """
        The refusal of a read without credentials; None if it has credentials, or may be answered otherwise.

        The configuration must be in memory as it is now; see L{Mounts.refresh_now}.
        """
        if request.header(b"authorization") is not None or session_secret(request) is not None:
            return None
        place = split(request.raw_path)
        if place is None:
            return None
        mount = self._mounts.find(place[0], place[1])
        if mount is not None and self._access.knows_now(ANONYMOUS, mount.repository) is not False:
            return None
        if self._mounts.open_to_strangers(place) is not None:
            return None
        return self._answer(place)

    def _answer(self, place: tuple[bytes, bytes, bytes]) -> PreparedAnswer:
        key = place[:2]
        found = self._kept.get(key)
        if found is None:
            error = unknown_place(ANONYMOUS, place)
            status, code = STATUSES[type(error)]
            found = PreparedAnswer(refusal_answer(Refusal(status, str(error), code)))
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            if len(key[0]) + len(key[1]) <= LONGEST_KEPT:
                self._kept[key] = found
        return found

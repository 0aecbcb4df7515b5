"""
The lists ``/versions`` of upstreams, one after another in a file: without the lines of gems that other members serve.

What an upstream appends to its list is appended to the file too, if its list is the last one there.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Final

from attrs import evolve, frozen

from pkgrepo.formats.rubygems.index.list_files import ListFile, ListWriter
from pkgrepo.gateway.services import Services
from pkgrepo.model import Repository
from pkgrepo.proxy.configuration import Rules
from pkgrepo.proxy.documents.held import DocumentRequest, Held
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.storage.gil import GilReleaser

from .pieces import HEAD, read_pieces
from .questions import versions_question

VERSIONS: Final[DocumentRequest] = versions_question()


@frozen(eq=False)
class UpstreamList:
    """A proxy with the list of its upstream; ``rules`` are those about the names that it may serve."""

    repository: Repository
    held: Held
    rules: Sequence[Rules]

    @property
    def begun(self) -> Hashable:
        """Differs whenever more has changed than the end of the list."""
        return self.repository.id, (self.held.base or self.held).document.fetched_ms

    @property
    def appended(self) -> int:
        """How many bytes have been appended since then."""
        base = self.held.base
        return 0 if base is None else self.held.document.meta["bytes"] - base.document.meta["bytes"]


@frozen(eq=False)
class Selection:
    """
    What is taken of an upstream's list: not the lines of gems that are ``taken``, and none of reserved names.

    The names of the others are collected in ``seen`` unless that is None. ``head`` tells whether the header is wanted.
    """

    rules: Sequence[Rules]
    taken: frozenset[str]
    seen: set[str] | None
    head: bool

    def lines(self, piece: bytes) -> bytes:
        """The lines of a piece that are taken."""
        if not self.rules and not self.taken and self.seen is None:
            return piece
        found: list[bytes] = []
        gil = GilReleaser()
        for line in piece.splitlines(keepends=True):
            name = line.partition(b" ")[0].decode("utf-8", "replace")
            if name not in self.taken and not any(each.reserved_by(name) for each in self.rules):
                found.append(line)
                if self.seen is not None:
                    self.seen.add(name)
            gil.release_if_due()
        return b"".join(found)


@frozen(eq=False)
class JoinedLists:
    """
    The lists of upstreams in a file, of which ``appended`` are the bytes appended to each.

    ``last`` is what is taken of the last one; None if that is not known any more.
    """

    file: ListFile
    appended: tuple[int, ...]
    last: Selection | None

    async def extend(self, services: Services, upstreams: Sequence[UpstreamList]) -> JoinedLists | None:
        """The same with what is new at the end; None if they must be joined anew."""
        appended = tuple(each.appended for each in upstreams)
        if appended == self.appended:
            return self
        if self.last is None or appended[:-1] != self.appended[:-1] or appended[-1] < self.appended[-1]:
            return None
        last = upstreams[-1]
        write = partial(_write_rest, self.file, self.last, self.appended[-1])
        file = await services.proxy.documents.read(last.repository, VERSIONS, last.held, write)
        return None if file is None else evolve(self, file=file, appended=appended)


async def join_lists(
    services: Services, upstreams: Sequence[UpstreamList], writer: ListWriter, taken: set[str], *, merges: bool
) -> JoinedLists:
    """
    Write the lists of upstreams without the gems that are ``taken``.

    A gem of several upstreams is taken of the first one, unless the repository ``merges`` them.
    """
    selection = None
    for number, each in enumerate(upstreams):
        seen = None if merges or number == len(upstreams) - 1 else set[str]()
        selection = Selection(each.rules, frozenset(taken), seen, head=number == 0)
        write = partial(_write, writer, selection)
        await services.proxy.documents.read(each.repository, VERSIONS, each.held, write)
        taken |= seen or set()
    # The names of a whole upstream would take 60 MB.
    last = selection if merges or len(upstreams) == 1 else None
    return JoinedLists(writer.end(), tuple(each.appended for each in upstreams), last)


def _write(writer: ListWriter, selection: Selection, *parts: PartsFile) -> None:
    for each in parts:
        head = HEAD in each.top
        for piece in read_pieces(each):
            if not head:
                writer.add(selection.lines(piece))
            elif selection.head:
                writer.add(piece)
            head = False


def _write_rest(before: ListFile, selection: Selection, start: int, *parts: PartsFile) -> ListFile | None:
    if len(parts) == 1:  # the list was damaged, and is fetched anew
        return None
    writer = ListWriter.continuing(before)
    writer.add(selection.lines(b"".join(read_pieces(parts[-1]))[start:]))
    return writer.end()

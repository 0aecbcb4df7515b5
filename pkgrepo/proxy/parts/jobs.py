"""One normalisation, as a thread of the server and the worker process run it, and its messages between the two."""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import Iterator
from typing import Final

import msgspec
from attrs import define

from pkgrepo.errors import PkgrepoError
from pkgrepo.proxy.parts.file import Output, write_parts

from .file import PartsFile
from .layout import PartsDamaged
from .values import Context, Entry, Normalised, NormaliserFunction

LONGEST_REASON: Final = 4096  # characters of a traceback; messages may contain parts of a document


@define
class NormalisingFailed(PkgrepoError):  # noqa: N818 - named for what happened
    """
    The document was not normalised, for a reason that is not known to lie in it: a later attempt may succeed.

    ``reason`` is for the log of the server.
    """

    reason: str

    def __str__(self) -> str:
        return "the server could not process the upstream's document"


class Job(msgspec.Struct, frozen=True):
    """
    What to do with a document: ``normaliser`` is the dotted name of a L{NormaliserFunction}.

    ``now_ms`` is the time, in Unix milliseconds, at which entries without a time were first seen.
    """

    normaliser: str
    context: Context
    now_ms: int


class Reply(msgspec.Struct, frozen=True):
    """
    The end of a job: the number of bytes written, the bytes of memory that the worker holds, and why it failed.

    ``invalid`` and ``pointer`` are those of L{pkgrepo.errors.Invalid}, ``failed`` is the reason of
    L{NormalisingFailed}.
    """

    size: int
    memory: int = 0
    invalid: str | None = None
    pointer: str = ""
    failed: str | None = None


def normalise(document: bytes, job: Job, previous: int | None, out: Output) -> None:
    """
    Normalise a document and write its parts file. Blocks.

    Entries without a time get the one that they have in the ``previous`` parts file, an open descriptor which stays the
    caller's, or else ``job.now_ms``.

    :raises Invalid: the document cannot be used; :raises NormalisingFailed: it failed otherwise
    :raises MemoryError: there is not enough memory
    """
    try:
        made = normaliser_of(job.normaliser)(document, job.context)
        write_parts(out, msgspec.structs.replace(made, entries=_dated(made, previous, job.now_ms)))
    except (PkgrepoError, MemoryError):
        raise
    except Exception as error:
        raise NormalisingFailed(traceback.format_exc()[-LONGEST_REASON:]) from error


def normaliser_of(name: str) -> NormaliserFunction:
    """The function with a dotted name, ``module:function``."""
    module, _, function = name.partition(":")
    found: NormaliserFunction = getattr(importlib.import_module(module), function)
    return found


def _dated(made: Normalised, previous: int | None, now_ms: int) -> Iterator[Entry]:
    """Fill in the times that the upstream does not say."""
    times: dict[tuple[bytes, str], tuple[int | None, bool]] | None = None
    for entry in made.entries:
        if entry.published_ms is not None:
            yield entry
            continue
        if times is None:
            times = {} if previous is None else _read_times(previous)
        published_ms, first_seen = times.get((entry.sort, entry.key), (now_ms, True))
        yield made.dated(msgspec.structs.replace(entry, published_ms=published_ms, first_seen=first_seen))


def _read_times(previous: int) -> dict[tuple[bytes, str], tuple[int | None, bool]]:
    try:
        with PartsFile(os.dup(previous)) as parts:
            return {(each.sort, each.key): (each.published_ms, each.first_seen) for each in parts.entries(())}
    except PartsDamaged:
        return {}

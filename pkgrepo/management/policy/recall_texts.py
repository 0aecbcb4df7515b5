"""The report of a recall as a document: CSV for programs, and Markdown for people."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from pkgrepo.repositories.clock import format_time

from .recall import cell
from .recall_records import RecallReport, ReportedFetch

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")

Rows = Callable[[], AsyncIterator[ReportedFetch]]
_COLUMNS: Final = (
    *("row", "repository", "package", "version", "path", "digest", "upstream", "published_at", "here_since", "by"),
    *("token", "pipeline", "address", "first_at", "last_at", "count"),
)


async def write_table(made: RecallReport, rows: Rows) -> AsyncIterator[bytes]:
    """The report as CSV (RFC 4180): a row for each file, and one for each client that fetched it."""
    yield _csv(_COLUMNS)
    for each in made.files:
        origin = (each.digest, each.upstream, _time(each.published_at), _time(each.here_since), each.by, each.token, "")
        place = ("file", each.repository, each.package, each.version, each.path)
        yield _csv((*place, *origin, "", _time(each.first_at), _time(each.last_at), str(each.count)))
    async for one in rows():
        pipeline = "yes" if one.pipeline else "no"
        place = ("fetch", one.repository, one.package, one.version, one.path)
        who = (one.user or "anonymous", one.token, pipeline, one.address)
        yield _csv((*place, "", "", "", "", *who, _time(one.first_at), _time(one.last_at), str(one.count)))


def _csv(values: Iterable[str | None]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow([cell(each) for each in values])
    return text.getvalue().encode()


async def write_markdown(made: RecallReport, rows: Rows) -> AsyncIterator[bytes]:
    """The report as Markdown."""
    facts = {
        "Advisory": f"{made.id}{f' ({chr(44).join(made.aliases)})' if made.aliases else ''}",
        "Title": made.title,
        "Page": made.url,
        "Packages": "; ".join(made.packages),
        "Advisory published": made.advised_at or "not known",
        "Recall opened": _time(made.opened_at) or "no",
        "Refused since": _time(made.blocked_at) or "not by the server itself",
        "Advisory withdrawn": _time(made.cleared_at) or "no",
        "First fetched": _time(made.first_at) or "not known to be",
        "Last fetched": _time(made.last_at) or "not known to be",
        "Fetches": f"{made.count}, of which {made.anonymous} by anonymous clients",
        "Users and tokens": str(made.clients),
        "Log of downloads since": _time(made.since) or "nothing is logged",
        "Report made": _time(made.made_at),
    }
    yield f"# Recall report: {_plain(made.id)}\n\n".encode()
    yield "".join(f"- {name}: {_plain(value)}\n" for name, value in facts.items()).encode()
    if made.problem:
        yield f"\n**{_plain(made.problem)}**\n".encode()
    yield b"\n## What\n\n" + _line(
        [
            "Repository",
            "Version",
            "File",
            "Digest",
            "From",
            "Published",
            "Here since",
            "By",
            "First",
            "Last fetched",
            "Fetches",
        ]
    )
    yield _line(["---"] * 11)
    for each in made.files:
        by = " with ".join(filter(None, (each.by, each.token)))
        place = [
            each.repository,
            f"{each.package} {each.version}",
            each.path,
            each.digest,
            each.upstream or "published here",
        ]
        times = [_time(one) for one in (each.published_at, each.here_since)]
        fetched = [_time(each.first_at), _time(each.last_at), str(each.count)]
        yield _line([*map(_plain, (*place, *times, by, *fetched))])
    yield b"\n## Who\n\n" + _line(
        ["User", "Token or pipeline", "Network", "Repository", "File", "First", "Last", "Fetches"]
    )
    yield _line(["---"] * 8)
    async for one in rows():
        token = f"{one.token} (pipeline)" if one.pipeline else one.token
        who = [one.user or "anonymous", token, one.address, one.repository, one.path]
        yield _line([*map(_plain, (*who, _time(one.first_at), _time(one.last_at), str(one.count)))])
    yield b"\nCopies that other caches and people hand on are not known, and nothing of the time before the log.\n"


def _line(cells: Sequence[str]) -> bytes:
    return f"| {' | '.join(cells)} |\n".encode()


def _plain(text: str | None) -> str:
    """A text in one line that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join((text or "").split()))


def _time(at: datetime | None) -> str:
    return "" if at is None else format_time(at)

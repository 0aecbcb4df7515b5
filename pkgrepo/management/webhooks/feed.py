"""The feed of events: a page of them as NDJSON, or a stream of new ones as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

import msgspec
from twisted.internet.task import deferLater

from pkgrepo.errors import AuthenticationFailed, AuthenticationRequired, Forbidden, Invalid
from pkgrepo.http.responses import NO_STORE, Response
from pkgrepo.management.api.access_rules import VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import DEFAULT_LIMIT, MAX_LIMIT
from pkgrepo.management.api.route import NDJSON, Parameter, Table
from pkgrepo.management.api.schema import LARGEST
from pkgrepo.management.api.streams import PAUSE_S, event_stream, rounds, wants_stream
from pkgrepo.webhooks.envelopes import Announcement
from pkgrepo.webhooks.event_types import EVENT_TYPES, QUIET, check_patterns, matches

MOST_BYTES: Final = 4 * 1024 * 1024  # of a page
AT_ONCE: Final = 100  # events that a stream reads together

table = Table("events")


@table.get(
    "/events",
    VIEWERS,
    "List events",
    query=[
        Parameter("after", "Only events after the one with this seq; without it the newest events.", "integer"),
        Parameter("limit", "Maximum number of events, 1 to 1000; 50 by default.", "integer"),
        Parameter("type", "Only events of these types: patterns such as package.*, separated by commas; * by default."),
    ],
    media_type="application/x-ndjson",
)
async def list_events(call: Call) -> Response:
    """
    One CloudEvent on each line, in the order of the events; only what the caller may read.

    A Link field with rel=next has the address of the next events; it is there, too, if the page is empty because the
    caller may see none of thousands of events. With "Accept: text/event-stream" the answer is a stream of server-sent
    events that waits for new ones: it begins after the event in Last-Event-ID or in after, and without them with the
    next event. It ends after some minutes at the latest, and clients then continue with Last-Event-ID. A caller may
    have 10 streams in each process of the server.
    """
    text = call.query("type")
    if text:
        patterns = check_patterns(each.strip() for each in text.split(","))
    else:
        patterns = [each for each in EVENT_TYPES if each not in QUIET]

    def wanted(type: str) -> bool:
        return matches(type, patterns)

    if wants_stream(call):
        return await _stream(call, wanted)
    limit = call.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
    feed = call.services.feed
    if call.query("after"):
        found = await feed.after(call.identity, call.integer("after", 0, 0, LARGEST), limit, wanted)
    else:
        found = await feed.latest(call.identity, limit, wanted)
    lines: list[bytes] = []
    seq, size = found.seq, 0
    for each in found.items:
        line = msgspec.json.encode(each.cloud_event()) + b"\n"
        size += len(line)
        if lines and size > MOST_BYTES:
            seq = _seq_of(lines[-1])
            break
        lines.append(line)
    query = f"after={seq}&limit={limit}" + (f"&type={','.join(patterns)}" if text else "")
    link = f'<{call.base_url}/api/events?{query}>; rel="next"'
    return Response(body=b"".join(lines), content_type=NDJSON, headers=(*NO_STORE, (b"Link", link.encode("ascii"))))


async def _stream(call: Call, wanted: Callable[[str], bool]) -> Response:
    feed, given = call.services.feed, (call.request.header(b"last-event-id") or b"").decode("latin-1").strip()
    if given and not (given.isascii() and given.isdigit() and int(given) <= LARGEST):
        raise Invalid("Last-Event-ID is the number of an event", "Last-Event-ID")
    if given:
        seq = int(given)
    elif call.query("after"):
        seq = call.integer("after", 0, 0, LARGEST)
    else:
        seq = await feed.last()
    return event_stream(call, lambda: _pieces(call, seq, wanted))


async def _pieces(call: Call, seq: int, wanted: Callable[[str], bool]) -> AsyncIterator[bytes]:
    """The events after ``seq``, and those that come, until the caller may see none any more; see L{rounds}."""
    feed, site = call.services.feed, call.request.site
    with suppress(AuthenticationFailed, AuthenticationRequired, Forbidden):
        async for silent in rounds(call):
            if silent:
                yield b": nothing new\n\n"
            more = True
            while more and not site.draining:
                found = await feed.after(call.identity, seq, AT_ONCE, wanted)
                if found.items:
                    yield b"".join(map(_event, found.items))
                seq, more = found.seq, found.more
                if more and not found.items:  # of thousands of events, which cost the caller nothing
                    await deferLater(site.reactor, PAUSE_S)


def _event(each: Announcement) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (each.seq, each.type.encode(), msgspec.json.encode(each.cloud_event()))


def _seq_of(line: bytes) -> int:
    found: int = msgspec.json.decode(line)["seq"]
    return found

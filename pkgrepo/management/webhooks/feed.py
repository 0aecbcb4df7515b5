"""
The feed of events: a page of them as NDJSON, or a stream of new ones as server-sent events.

Another server follows the events of one repository with ``repository``, the position in the Link field, and ``wait``:
what it needs for that is the right to read the repository.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlencode

import msgspec
from twisted.internet.task import deferLater

from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.errors import AuthenticationFailed, AuthenticationRequired, Forbidden, Invalid
from pkgrepo.http.responses import NO_STORE, Response
from pkgrepo.management.api.access_rules import READERS, VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import find_repository
from pkgrepo.management.api.pages import DEFAULT_LIMIT, MAX_LIMIT
from pkgrepo.management.api.route import NDJSON, Parameter, Table
from pkgrepo.management.api.schema import LARGEST
from pkgrepo.management.api.streams import PAUSE_S, STEP_S, event_stream, rounds, wants_stream
from pkgrepo.model import Repository
from pkgrepo.webhooks.envelopes import Announcement
from pkgrepo.webhooks.event_types import EVENT_TYPES, QUIET, check_patterns, matches
from pkgrepo.webhooks.feed import Found

MOST_BYTES: Final = 4 * 1024 * 1024  # of a page
AT_ONCE: Final = 100  # events that a stream reads together
LONGEST_WAIT_S: Final = 30  # for an event; proxies on the way end a request of a minute
LEFT: Final = b"X-Events-Left"  # how many of the 10,000 events of the repository after the page are for the caller

table = Table("events")


@table.get(
    "/events",
    VIEWERS,
    "List events",
    query=[
        Parameter("after", "Only events after the one with this seq or id; without it the newest events."),
        Parameter("repository", "Only events of this repository, by its path or id, which the caller may read."),
        Parameter("wait", "With after: seconds to wait for an event, if there is none yet; at most 30.", "integer"),
        Parameter("limit", "Maximum number of events, 1 to 1000; 50 by default.", "integer"),
        Parameter("type", "Only events of these types: patterns such as package.*, separated by commas; * by default."),
    ],
    media_type="application/x-ndjson",
    refused=((410, "The log does not have the event any more that after names."),),
)
async def list_events(call: Call) -> Response:
    """
    One CloudEvent on each line, in the order of the events; only what the caller may read.

    A Link field with rel=next has the address of the next events; it is there, too, if the page is empty because the
    caller may see none of thousands of events. With "Accept: text/event-stream" the answer is a stream of server-sent
    events that waits for new ones: it begins after the event in Last-Event-ID or in after, and without them with the
    next event. It ends after some minutes at the latest, and clients then continue with Last-Event-ID. A caller may
    have 10 streams in each process of the server; what waits beyond that is answered at once.

    With repository the Link field has the id of the last event that was looked at as after. If the log does not have
    that event any more, since the server was restored from an older backup, the answer is 410 (position_lost). The
    field X-Events-Left has the number of further events of the repository of these types that the caller may see, of
    the 10,000 after the page.
    """
    text = call.query("type")
    if text:
        patterns = check_patterns(each.strip() for each in text.split(","))
    else:
        patterns = [each for each in EVENT_TYPES if each not in QUIET]

    def wanted(type: str) -> bool:
        return matches(type, patterns)

    repository = await _named(call)
    if wants_stream(call):
        return await _stream(call, wanted, repository)
    limit = call.integer("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
    feed = call.services.events.feed
    if call.query("after"):
        found = await _after(call, await _seq(call, repository), limit, wanted, repository)
    else:
        found = await feed.latest(call.identity, limit, wanted, repository)
    lines: list[bytes] = []
    seq, size = found.seq, 0
    for each in found.items:
        line = msgspec.json.encode(each.cloud_event()) + b"\n"
        size += len(line)
        if lines and size > MOST_BYTES:
            seq = _seq_of(lines[-1])
            break
        lines.append(line)
    fields = {"after": str(seq), "limit": str(limit)} | ({"type": ",".join(patterns)} if text else {})
    headers = NO_STORE
    if repository is not None:
        fields |= {"after": await feed.position(seq), "repository": repository.uid}
        left = await feed.left(call.identity, repository, seq, wanted)
        headers = (*headers, (LEFT, str(left).encode("ascii")))
    link = f'<{call.base_url}/api/events?{urlencode(fields, safe="*,")}>; rel="next"'
    headers = (*headers, (b"Link", link.encode("ascii")))
    return Response(body=b"".join(lines), content_type=NDJSON, headers=headers)


async def _named(call: Call) -> Repository | None:
    """
    The repository in the query, None without one. The caller may read all of it, so that a replica misses nothing.

    :raises NotFound: the caller may not know that it exists
    :raises Forbidden: the caller may read only some packages of it
    """
    name = call.query("repository")
    if not name:
        return None
    found = find_repository(call.registry, name)
    await READERS.check(
        call.identity, call.route.method, call.services.callers.authorizer, repository=found, asked=name
    )
    assert found is not None, "the check refuses what does not exist"
    return found


async def _seq(call: Call, repository: Repository | None) -> int:
    """The number of the event in ``after``."""
    given = call.query("after")
    if given.isascii() and given.isdigit():
        return call.integer("after", 0, 0, LARGEST)
    return await call.services.events.feed.seq_at(given, repository)


async def _after(
    call: Call, seq: int, limit: int, wanted: Callable[[str], bool], repository: Repository | None
) -> Found:
    """The events after one; if there are none yet, those that come while the caller waits."""
    feed, site = call.services.events.feed, call.request.site
    ends, who = site.reactor.seconds() + call.integer("wait", 0, 0, LONGEST_WAIT_S), call.counted_as
    found = await feed.after(call.identity, seq, limit, wanted, repository)
    if found.items or found.more or site.reactor.seconds() >= ends or not feed.enter(who):
        return found
    try:
        while not (found.items or found.more or site.draining) and site.reactor.seconds() < ends:
            changed = feed.changed()
            try:
                # what was committed before ``changed`` was there
                found = await feed.after(call.identity, found.seq, limit, wanted, repository)
                if not found.items:
                    with suppress(TimedOut):
                        await within(STEP_S, changed, site.reactor, "nothing was committed")
            finally:
                changed.cancel()
    finally:
        feed.leave(who)
    return found


async def _stream(call: Call, wanted: Callable[[str], bool], repository: Repository | None) -> Response:
    feed, given = call.services.events.feed, (call.request.header(b"last-event-id") or b"").decode("latin-1").strip()
    if given and not (given.isascii() and given.isdigit() and int(given) <= LARGEST):
        raise Invalid("Last-Event-ID is the number of an event", "Last-Event-ID")
    if given:
        seq = int(given)
    elif call.query("after"):
        seq = await _seq(call, repository)
    else:
        seq = await feed.last()
    return event_stream(call, lambda: _pieces(call, seq, wanted, repository))


async def _pieces(
    call: Call, seq: int, wanted: Callable[[str], bool], repository: Repository | None
) -> AsyncIterator[bytes]:
    """The events after ``seq``, and those that come, until the caller may see none any more; see L{rounds}."""
    feed, site = call.services.events.feed, call.request.site
    with suppress(AuthenticationFailed, AuthenticationRequired, Forbidden):
        async for silent in rounds(call):
            if silent:
                yield b": nothing new\n\n"
            more = True
            while more and not site.draining:
                found = await feed.after(call.identity, seq, AT_ONCE, wanted, repository)
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

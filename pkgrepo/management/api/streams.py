"""Responses that are streams of server-sent events (HTML standard, section 9.2), of which a caller may have some."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Final

from twisted.internet.task import deferLater

from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.gateway.responses.long_bodies import deliver_pieces
from pkgrepo.http.responses import NO_STORE, Content, Refusal, Response
from pkgrepo.management.api.schema import LARGEST

from .call import Call

EVENT_STREAM: Final = b"text/event-stream"
HEARTBEAT_S: Final = 15.0  # seconds of silence after which a comment is sent, so that proxies keep the connection
LONGEST_S: Final = 900.0  # seconds after which a stream ends: clients come again, and their credentials are checked
STEP_S: Final = 1.0  # how long a stream waits until it looks whether the server stops
PAUSE_S: Final = 0.5  # between two looks at what changes, whatever else is committed meanwhile
TOO_MANY: Final = "there are too many streams of events: close one, or try again later"
RETRY_MS: Final = 2000  # how long clients wait before they come again


def wants_stream(call: Call) -> bool:
    """Whether the caller asks for a stream instead of a value."""
    return EVENT_STREAM in (call.request.header(b"accept") or b"").lower()


def event_stream(call: Call, pieces: Callable[[], AsyncIterator[bytes]]) -> Response:
    """A stream of what ``pieces`` yields: whole events. A caller who has too many streams gets 429."""
    feed, who = call.services.events.feed, call.counted_as

    async def begun() -> AsyncIterator[bytes]:
        yield b"retry: %d\n\n" % RETRY_MS
        async for piece in pieces():
            yield piece

    async def deliver(consumer: Any, start: int, end: int) -> None:
        if not feed.enter(who):
            raise Refusal(429, TOO_MANY, "too_many_streams", headers=((b"Retry-After", b"30"),))
        try:
            await deliver_pieces(begun, consumer, start, end)
        finally:
            feed.leave(who)

    headers = (*NO_STORE, (b"X-Accel-Buffering", b"no"))  # which nginx reads: it would hold events back
    return Response(body=Content(LARGEST, deliver=deliver, endless=True), content_type=EVENT_STREAM, headers=headers)


async def rounds(call: Call) -> AsyncIterator[bool]:
    """
    Once now and after commits, with whether nothing was committed for ``HEARTBEAT_S``.

    They end when the server stops, after ``LONGEST_S``, and when the caller's credentials end: ``call.identity`` is as
    of now in each round.
    """
    feed, site, reactor = call.services.events.feed, call.request.site, call.request.site.reactor
    ends, silent, access = reactor.seconds() + LONGEST_S, False, call.route.access
    while not site.draining and reactor.seconds() < ends:
        identity = await call.shared.access.identify(call.request, counted=False)
        call.identity = await access.effective_identity(identity, call.catalog)
        changed, waited = feed.changed(), 0.0
        try:
            yield silent
            silent = True
            while silent and waited < HEARTBEAT_S and not site.draining:
                with suppress(TimedOut):
                    await within(STEP_S, changed, reactor, "nothing was committed")
                    silent = False
                if silent:
                    changed, waited = feed.changed(), waited + STEP_S
            if not silent:
                await deferLater(reactor, PAUSE_S)
        finally:
            changed.cancel()

"""``pkgrepo events``: what happened on a server, and what happens now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

import click
import msgspec

from pkgrepo.client.api import at
from pkgrepo.client.http import Failed
from pkgrepo.client.printer import parse_time
from pkgrepo.client.session import Session, remote

AGAIN_S: Final = 2.0  # seconds after which a stream that has ended is opened again
LONGEST_LINE: Final = 16 * 1024 * 1024  # bytes


@click.command()
@click.option("--after", type=click.IntRange(min=0), help="Begin after the event with this number.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many.")
@click.option("--type", "type_", default="", help="Only these types, such as package.*,tag.*.")
@click.option("--follow", "-f", is_flag=True, help="Print new events as they come, until you press Ctrl-C.")
@remote
async def events(session: Session, after: int | None, limit: int, type_: str, *, follow: bool) -> None:
    """Print events that you may see; the newest is the last. With --json each line is a CloudEvent."""
    query = {"type": type_} if type_ else {}
    last = after
    if not follow or after is None:
        more = {"limit": str(limit)} | ({} if after is None else {"after": str(after)})
        reply = await session.client.call("GET", at("events"), query={**query, **more})
        for line in reply.body.splitlines():
            last = _print(session, line)
    reader = _Reader(lambda line: _print(session, line), last)
    while follow:
        headers = {"Accept": "text/event-stream"} | ({} if reader.last is None else {"Last-Event-ID": str(reader.last)})
        reader.begin()
        try:
            await session.client.fetch(at("events") + (f"?{urlencode(query)}" if query else ""), reader.take, headers)
        except Failed as error:
            if error.status not in (0, 503) or not reader.connected:
                raise
        await session.sleep(AGAIN_S)


class _Reader:
    """Reads a stream of server-sent events; ``last`` is the number of the last event that was printed."""

    def __init__(self, show: Callable[[bytes], int], last: int | None) -> None:
        self._show = show
        self._rest = b""
        self.connected = False
        self.last = last

    def begin(self) -> None:
        """Begin with a new stream."""
        self._rest = b""

    def take(self, data: bytes) -> None:
        """Print the events that are complete."""
        self.connected = True
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                self.last = self._show(line.removeprefix(b"data: "))
        if len(self._rest) > LONGEST_LINE:
            raise Failed("the server sends a line that is too long")


def _print(session: Session, line: bytes) -> int:
    """Print an event. Returns its number."""
    event: Any = msgspec.json.decode(line)
    if session.printer.as_json:
        click.echo(line)
    else:
        time = parse_time(event["time"])
        kind = event["type"].removeprefix("pkgrepo.").removesuffix(".v1")
        when = "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"
        session.printer.line(f"{event['seq']}  {when}  {kind}  {event['subject']}  {event['data'].get('actor', '')}")
    return int(event["seq"])

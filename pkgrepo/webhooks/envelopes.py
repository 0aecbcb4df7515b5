"""
The public form of events: CloudEvents 1.0 in structured mode, and the plain envelope.

The data of an event has only what a reader of its package may see. Long lists are cut, so that a body stays small.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec
from attrs import frozen

from pkgrepo.model import Repository
from pkgrepo.repositories.clock import format_time
from pkgrepo.storage.catalog.packages.events import REPOSITORY_REMOVED, Event

from .event_types import type_of

Format = Literal["cloudevents", "plain"]

MOST_ITEMS: Final = 100  # of a list in the data, such as the files of a version
LONGEST_TEXT: Final = 1000  # characters of a text in the data
PLAIN: Final = "application/json"
STRUCTURED: Final = "application/cloudevents+json; charset=utf-8"  # CloudEvents HTTP binding 3.2
# What internal kinds of events have in their data besides these is for the server itself.
_PUBLIC: Final = ("version", "files", "paths", "path", "tags", "digest", "media_type", "reason", "uid", "name")


@frozen
class Announcement:
    """
    An event as other programs see it.

    ``id`` is the same whenever the event is sent. ``subject`` is ``storage/repository/package@version``, as much of it
    as the event is about, of an image with ``:tag`` or ``@digest``. Events of one ``thread`` reach a receiver in their
    order.
    """

    seq: int
    id: str
    type: str
    source: str
    subject: str
    thread: str
    time: str
    data: Mapping[str, Any]

    def cloud_event(self) -> dict[str, Any]:
        """The event as CloudEvents 1.0 has it, with its place in the log as the extension ``seq``."""
        return {
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": f"pkgrepo.{self.type}.v1",
            "subject": self.subject,
            "time": self.time,
            "datacontenttype": "application/json",
            "seq": self.seq,
            "data": self.data,
        }

    def plain(self) -> dict[str, Any]:
        """The event without an envelope of a standard."""
        return {
            "id": self.id,
            "type": self.type,
            "source": self.source,
            "subject": self.subject,
            "time": self.time,
            "seq": self.seq,
            "data": self.data,
        }

    def body(self, format: Format) -> str:
        """The body of a request that delivers the event."""
        return msgspec.json.encode(self.cloud_event() if format == "cloudevents" else self.plain()).decode()


def announce(event: Event, repository: Repository | None, source: str) -> Announcement | None:
    """
    The public form of an event; None for one that is internal, as those of what is staged are.

    ``repository`` is where it happened; None: it is about no repository, or about one that was removed.
    """
    kind = type_of(event.kind, event.data)
    if kind is None or event.data.get("part") or (repository is not None and repository.stage is not None):
        return None
    path = "" if repository is None else repository.path
    data = {name: event.data[name] for name in _PUBLIC if name in event.data} if kind != event.kind else event.data
    about: dict[str, Any] = {}
    if repository is not None:
        about = {"repository": path, "format": repository.format}
    elif event.kind == REPOSITORY_REMOVED and "repository" in event.data:
        path = event.data["repository"]
        about = {"repository": path, "format": event.data["format"]}
    if event.package_key:
        about["package"] = event.package_key
    subject = "/".join(each for each in (path, event.package_key or event.data.get("package")) if each) or str(
        event.data.get("name", "")
    )
    return Announcement(
        seq=event.seq,
        id=id_of(event),
        type=kind,
        source=source,
        subject=subject + _suffix(event.data),
        thread=f"{event.repository_id}/{event.package_key}",
        time=format_time(event.at),
        data=_cut({**about, "actor": event.actor, **data}),
    )


def id_of(event: Event) -> str:
    """
    The id of an event in its public form.

    Its time tells it from an event that had the same place before the catalog was restored from a backup.
    """
    return f"evt_{event.seq}_{round(event.at.timestamp() * 1000):x}"


def _suffix(data: Mapping[str, Any]) -> str:
    """The version that an event is about, as a part of its subject; of an image, a tag or the digest."""
    if data.get("version"):
        return f"@{data['version']}"
    if not data.get("digest"):
        return ""
    named = data.get("tags") or ()
    return f":{next(iter(named))}" if len(named) == 1 else f"@{data['digest']}"


def ping(message_id: str, time: str, source: str, name: str) -> Announcement:
    """The event that tests a webhook."""
    data = {"webhook": name}
    return Announcement(0, message_id, "ping", source, name, "", time, data)


def headers_of(body: str, format: Format) -> dict[str, str]:
    """
    The header fields that describe a body.

    A CloudEvent has its attributes in them, too, so that receivers may route it without reading the body.
    """
    if format != "cloudevents":
        return {"content-type": PLAIN}
    event = msgspec.json.decode(body)
    attributes = ("specversion", "id", "source", "type", "subject", "time")
    return {
        "content-type": STRUCTURED,
        # CloudEvents HTTP binding 3.1.3.2: what is not printable ASCII, and some of that, is percent-encoded.
        **{f"ce-{name}": quote(event[name], safe=_SAFE) for name in attributes if event[name]},
    }


_SAFE: Final = "!#$&'()*+,-./:;<=>?@[]^_`{|}~"


def _cut(value: Any) -> Any:
    match value:
        case str():
            return value if len(value) <= LONGEST_TEXT else f"{value[: LONGEST_TEXT - 1]}…"
        case Mapping():
            return {key: _cut(each) for key, each in list(value.items())[:MOST_ITEMS]}
        case list() | tuple():
            return [_cut(each) for each in value[:MOST_ITEMS]]
        case _:
            return value

"""The event log: each event is inserted in the transaction of the change that it describes, and never updated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import Actor
from pkgrepo.storage.catalog.rows import (
    at_or_none,
    batches,
    column,
    dump,
    every,
    find,
    load,
    number,
    placeholders,
    rows,
    scalar,
)

REPOSITORY_REMOVED = "repository_removed"  # event data: uid, storage_id and name of the repository
REPOSITORY_RESTORED = "repository_restored"
# Kinds of the events of images that move or remove tags, which their data have as tags.
OF_TAGS = ("published", "cached", "tagged", "untagged", "deleted", "evicted", "released")
EPOCH = datetime.fromtimestamp(0, UTC)
SERVER = 0  # in place of the id of a repository, in events of the server as a whole
# Others are about the server, or the settings of a repository; see ``webhooks.event_types``.
_OF_CONTENT = "(package_key <> '' OR kind NOT LIKE '%.%')"
# With a parameter in place of the constant, the engines could not use the partial index of these events.
_REMOVAL = f"kind = '{REPOSITORY_REMOVED}'"


@frozen
class Event:
    """
    One change of a repository.

    ``seq`` grows in the order of commits. ``version_key`` is empty if the event is not about a single version.
    """

    seq: int
    repository_id: int
    package_id: int | None
    package_key: str
    version_key: str
    kind: str
    data: Mapping[str, Any]
    user_id: int | None
    actor: str
    token_id: int | None
    at: datetime


_EVENT, _event = rows(Event, "event")


def paths_of(event: Event) -> list[str]:
    """The paths of the files that came, changed or went, as far as the event names them."""
    return [*(each["path"] for each in event.data.get("files", ())), *event.data.get("paths", ())]


@frozen
class PackageEvent:
    """An event of a package: the key of its version, the kind, and when. ``text`` is the data, which are long."""

    version_key: str
    kind: str
    at_ms: int
    text: str

    def data(self) -> dict[str, Any]:
        """The data."""
        found: dict[str, Any] = load(self.text)
        return found


@frozen
class NewEvent:
    """An event that has just happened; the fields are those of L{Event}."""

    repository_id: int
    package_id: int | None
    package_key: str
    version_key: str
    kind: str
    data: Mapping[str, Any]


def append_event(
    tx: Transaction,
    *,
    repository_id: int,
    package_id: int | None,
    package_key: str,
    version_key: str,
    kind: str,
    data: Mapping[str, Any],
    actor: Actor,
    now_ms: int,
) -> None:
    """Append one event to the log."""
    append_events(tx, [NewEvent(repository_id, package_id, package_key, version_key, kind, data)], actor, now_ms)


def append_server_event(tx: Transaction, kind: str, data: Mapping[str, Any], actor: Actor, now_ms: int) -> None:
    """Append an event of the server as a whole; ``data`` has the ``name`` of what it is about."""
    append_repository_event(tx, SERVER, kind, data, actor, now_ms)


def append_repository_event(
    tx: Transaction, repository_id: int, kind: str, data: Mapping[str, Any], actor: Actor, now_ms: int
) -> None:
    """Append an event of a repository that is about none of its packages."""
    append_events(tx, [NewEvent(repository_id, None, "", "", kind, data)], actor, now_ms)


def append_events(tx: Transaction, new: Iterable[NewEvent], actor: Actor, now_ms: int) -> None:
    """Append events in their order, some hundred with each statement."""
    for some in batches(list(new)):
        values: list[Value] = []
        for each in some:
            values += (each.repository_id, each.package_id, each.package_key, each.version_key, each.kind)
            values += (dump(each.data), actor.user_id, actor.name, actor.token_id, now_ms)
        tx.send(
            f"""
            INSERT INTO event (repository_id, package_id, package_key, version_key, kind, data, user_id, actor,
                               token_id, at)
            VALUES {placeholders(len(some), "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")}
            """,
            values,
        )


def publications(r: Reader, package_id: int, limit: int) -> dict[str, tuple[str, str, int]]:
    """Who published or fetched versions of a package last, by key: the name, that of the token, and when (ms)."""
    rows = r.all(
        """
        SELECT e.version_key, e.actor, COALESCE(t.name, ''), e.at FROM (
            SELECT seq, version_key, actor, token_id, at FROM event
            WHERE package_id = ? AND kind IN ('published', 'imported', 'cached', 'package.promoted')
            ORDER BY seq DESC LIMIT ?
        ) e LEFT JOIN token t ON t.id = e.token_id ORDER BY e.seq
        """,
        (package_id, limit),
    )
    return {key: (actor, token, at_ms) for key, actor, token, at_ms in rows}


def last_seq(r: Reader) -> int:
    """The sequence number of the latest event; 0 if there is no event."""
    return number(r, "SELECT MAX(seq) FROM event")


def last_seq_of_content(r: Reader, after: int) -> int:
    """The sequence number of the latest event about content of repositories; ``after`` if none came after it."""
    sql = f"SELECT seq FROM event WHERE seq > ? AND {_OF_CONTENT} ORDER BY seq DESC LIMIT 1"
    return int(scalar(r, sql, (after,)) or after)


def last_seq_of_repository(r: Reader, repository_id: int) -> int:
    """The sequence number of the latest event of one repository; 0 if it has no event."""
    return number(r, "SELECT MAX(seq) FROM event WHERE repository_id = ?", (repository_id,))


def last_published(r: Reader, repository_id: int, limit: int) -> list[Event]:
    """The last events of a repository by which versions came, the latest first."""
    return every(
        r,
        _event,
        f"""
        {_EVENT} WHERE repository_id = ? AND kind IN ('published', 'cached', 'imported') AND package_key <> ''
        ORDER BY seq DESC LIMIT ?
        """,
        (repository_id, limit),
    )


def changed_repositories(r: Reader, seq: int) -> set[int]:
    """The catalog keys of the repositories that have an event after ``seq``."""
    return set(column(r, "SELECT DISTINCT repository_id FROM event WHERE seq > ?", (seq,)))


def changed_packages(r: Reader, repository_id: int, seq: int, limit: int) -> tuple[list[str], int]:
    """
    The keys of the packages that changed after ``seq``, without duplicates, and the ``seq`` for the next call.

    Reads at most ``limit`` events. The returned ``seq`` is that of the last event read; without any, it is the one
    given.
    """
    rows = r.all(
        "SELECT seq, package_key FROM event WHERE repository_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (repository_id, seq, limit),
    )
    keys = list(dict.fromkeys(key for _, key in rows if key))
    return keys, max((seq, *(each for each, _ in rows)))


def events_after(r: Reader, seq: int, limit: int, repository_id: int | None = None) -> list[Event]:
    """At most ``limit`` events after ``seq``, oldest first, of one repository or of all (None)."""
    if repository_id is None:
        return every(r, _event, f"{_EVENT} WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit))
    sql = f"{_EVENT} WHERE repository_id = ? AND seq > ? ORDER BY seq LIMIT ?"
    return every(r, _event, sql, (repository_id, seq, limit))


def find_event(r: Reader, seq: int) -> Event | None:
    """The event with a sequence number, or None."""
    return find(r, _event, f"{_EVENT} WHERE seq = ?", (seq,))


def kinds_after(r: Reader, repository_id: int, seq: int, most: int) -> list[tuple[Event, int]]:
    """
    Of the next ``most`` events of a repository after ``seq``: one for each kind, and how many are like it.

    It is for who may read the whole repository: of what is in quarantine alone there is one for each package. The data
    have ``reason`` and ``quarantined`` where those of the events do, which decide who sees them as what. All other
    fields are empty, and ``seq`` is the place in the list. Takes some ms: call it on a reader thread.
    """
    sql = """
        SELECT MIN(package_key), kind, reasoned, held, COUNT(*) FROM (
            SELECT package_key, kind, data LIKE ? AS reasoned, data LIKE ? AS held
            FROM event WHERE repository_id = ? AND seq > ? ORDER BY seq LIMIT ?
        ) e
        GROUP BY kind, reasoned, held, package_key = '', CASE WHEN held THEN package_key ELSE '' END
        """
    parameters = ('%"reason":%', '%"quarantined":true%', repository_id, seq, most)
    found: list[tuple[Event, int]] = []
    for package_key, kind, reasoned, held, count in r.all(sql, parameters):
        data = ({"reason": ""} if reasoned else {}) | ({"quarantined": True} if held else {})
        event = Event(len(found), repository_id, None, package_key, "", kind, data, None, "", None, EPOCH)
        found.append((event, count))
    return found


def events_of_tag(r: Reader, package_id: int, tag: str, before: int, limit: int) -> list[Event]:
    """
    At most ``limit`` events before the sequence number ``before`` that moved or removed a tag of an image.

    The newest first. Reads the events of the image until it has so many: call it on a reader thread.
    """
    kinds = placeholders(len(OF_TAGS))
    named = f'%"{tag}"%'  # a tag has no character that JSON or LIKE escapes, but underscores, which match themselves
    found: list[Event] = []
    while len(found) < limit:
        some = every(
            r,
            _event,
            f"""
            {_EVENT} WHERE package_id = ? AND seq < ? AND kind IN ({kinds}) AND data LIKE ?
            ORDER BY seq DESC LIMIT ?
            """,
            (package_id, before, *OF_TAGS, named, limit),
        )
        found += [each for each in some if tag in each.data.get("tags", ())]
        if len(some) < limit:
            break
        before = some[-1].seq
    return found[:limit]


def package_history(r: Reader, package_id: int) -> list[PackageEvent]:
    """All events of a package, oldest first. A package has thousands: call it on a reader thread."""
    sql = "SELECT version_key, kind, at, data FROM event WHERE package_id = ? ORDER BY seq"
    return [PackageEvent(*row) for row in r.all(sql, (package_id,))]


def removed_package(r: Reader, repository_id: int, key: str) -> int | None:
    """
    The id that a package had which was removed last under a key; None if the log does not have that.

    Reads the events of the repository, the newest first: call it on a reader thread.
    """
    sql = """
        SELECT package_id FROM event WHERE repository_id = ? AND package_key = ? AND kind = 'deleted'
        ORDER BY seq DESC LIMIT 1
    """
    return scalar(r, sql, (repository_id, key))


def packages_with_event(r: Reader, repository_id: int, kind: str, after_ms: int) -> set[str]:
    """The keys of the packages of a repository that have an event of a kind after a time."""
    sql = "SELECT DISTINCT package_key FROM event WHERE repository_id = ? AND kind = ? AND at > ?"
    return set(column(r, sql, (repository_id, kind, after_ms)))


def events_before(r: Reader, seq: int, limit: int, repository_id: int | None = None) -> list[Event]:
    """At most ``limit`` events before ``seq``, the newest first, of one repository or of all (None)."""
    if repository_id is None:
        return every(r, _event, f"{_EVENT} WHERE seq < ? ORDER BY seq DESC LIMIT ?", (seq, limit))
    sql = f"{_EVENT} WHERE repository_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
    return every(r, _event, sql, (repository_id, seq, limit))


def last_data(r: Reader, package_id: int, kind: str, digest: str) -> dict[str, Any] | None:
    """The data of the latest event of a kind about a manifest of an image; None if there is none."""
    sql = "SELECT data FROM event WHERE package_id = ? AND kind = ? ORDER BY seq DESC"
    return next((data for text in column(r, sql, (package_id, kind)) if (data := load(text))["digest"] == digest), None)


def find_removal_event(r: Reader, repository_id: int) -> Event | None:
    """The event that records the removal of a repository, or None."""
    return find(r, _event, f"{_EVENT} WHERE repository_id = ? AND {_REMOVAL} ORDER BY seq DESC", (repository_id,))


def removed_repository_uids(r: Reader) -> set[str]:
    """The public ids (``uid``) of all removed repositories."""
    return {load(data)["uid"] for data in column(r, f"SELECT data FROM event WHERE {_REMOVAL}")}


def last_activity(r: Reader, repository_id: int) -> datetime | None:
    """The time of the latest event about the content of a repository; None if it has none."""
    sql = f"""
        SELECT at FROM event WHERE repository_id = ? AND {_OF_CONTENT}
        ORDER BY seq DESC LIMIT 1
        """
    return at_or_none(scalar(r, sql, (repository_id,)))

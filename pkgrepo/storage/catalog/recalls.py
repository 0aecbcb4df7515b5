"""
Recalls that the server has opened by itself: known malware that is, or was, in repositories.

They are a setting, with the state of the advisories up to which they are complete (``AdvisoryLoad.changes``). An opened
one stays until it is pushed out by others, also when its record was withdrawn. Its events are of the package in each
repository, so that replicas and twins look again at what they have of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM
from pkgrepo.model.advisories import MALWARE, Advisory
from pkgrepo.storage.catalog import advisories
from pkgrepo.storage.catalog.malware import NEXT
from pkgrepo.storage.catalog.packages.events import NewEvent, append_events
from pkgrepo.storage.catalog.rows import batches, marks_of
from pkgrepo.storage.catalog.server import settings

RECALLS: Final = "recalls"  # the setting: JSON, the oldest first
MOST_RECALLS: Final = 500
MOST_PLACES: Final = 20  # repositories of one
MOST_VERSIONS: Final = 20  # of a package in one repository that are named
MOST_FOUND: Final = 20_000  # versions that are looked at together
OPENED: Final = "package.malware"  # the events
CLEARED: Final = "package.cleared"

Key = tuple[str, str, str]  # the id of a record, the ecosystem, and the key of the package


class Place(msgspec.Struct, frozen=True):
    """A repository that has, or had, such versions: ``count`` of them, and the names of some."""

    repository_id: int
    repository: str
    versions: Sequence[str]
    count: int


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """
    Malware in repositories, by the record of an advisory database.

    ``clients`` have fetched it, and anonymous ones beside them so often, up to the time at which it was opened; they
    are ``counted`` once all processes have written what was fetched until then. It is ``blocked`` if the server refuses
    it by itself. ``cleared_ms`` is when the record was withdrawn, 0 for never.
    """

    advisory: str
    ecosystem: str
    package_key: str
    package: str
    title: str
    opened_ms: int
    places: Sequence[Place]
    clients: int = 0
    anonymous: int = 0
    counted: bool = False
    blocked: bool = True
    cleared_ms: int = 0

    @property
    def key(self) -> Key:
        """What it is about."""
        return self.advisory, self.ecosystem, self.package_key

    @property
    def is_open(self) -> bool:
        """Whether the record still says so."""
        return not self.cleared_ms


class Recalls(msgspec.Struct, frozen=True):
    """All that are kept, the oldest first; ``checked`` is the state of the advisories up to which they are complete."""

    checked: int = -1
    recalls: Sequence[Recall] = ()


_decode = msgspec.json.Decoder(Recalls).decode


def read_recalls(r: Reader) -> Recalls:
    """All that are kept."""
    text = settings.get(r, RECALLS)
    return Recalls() if text is None else _decode(text)


def put_recalls(
    tx: Transaction, checked: int, opened: Sequence[Recall], cleared: Collection[Key], now_ms: int
) -> list[Recall]:
    """
    Keep new ones, and note that others are cleared. Returns the new ones that no other process has opened.

    While ``MOST_RECALLS`` are open no more are opened.
    """
    stored = read_recalls(tx)
    kept = [
        msgspec.structs.replace(each, cleared_ms=now_ms) if each.is_open and each.key in cleared else each
        for each in stored.recalls
    ]
    known = {each.key for each in kept if each.is_open}
    new = [each for each in opened if each.key not in known][: MOST_RECALLS - len(known)]
    closed = [each for before, each in zip(stored.recalls, kept, strict=True) if before.is_open and not each.is_open]
    surplus = len(kept) + len(new) - MOST_RECALLS
    forgotten = {id(each) for each in [one for one in kept if not one.is_open][: max(0, surplus)]}
    left = [*(each for each in kept if id(each) not in forgotten), *new]
    settings.put(tx, RECALLS, msgspec.json.encode(Recalls(checked, left)).decode())
    events = [
        event for kind, some in ((OPENED, new), (CLEARED, closed)) for each in some for event in _events(kind, each)
    ]
    append_events(tx, events, SYSTEM, now_ms)
    return new


def put_counts(tx: Transaction, counts: Mapping[Key, tuple[int, int]]) -> None:
    """Keep how many have fetched what some open recalls are about."""
    stored = read_recalls(tx)
    kept = [
        msgspec.structs.replace(
            each,
            clients=max(each.clients, counts[each.key][0]),
            anonymous=max(each.anonymous, counts[each.key][1]),
            counted=True,
        )
        if each.is_open and each.key in counts
        else each
        for each in stored.recalls
    ]
    settings.put(tx, RECALLS, msgspec.json.encode(Recalls(stored.checked, kept)).decode())


def _events(kind: str, recall: Recall) -> list[NewEvent]:
    about = {"package": recall.package, "advisory": recall.advisory, "title": recall.title, "blocked": recall.blocked}
    if kind == OPENED:
        about |= {"clients": recall.clients, "anonymous": recall.anonymous}
    return [
        NewEvent(
            each.repository_id,
            None,
            recall.package_key,
            "",
            kind,
            {**about, "versions": each.versions, "count": each.count},
        )
        for each in recall.places
    ]


class Hit(msgspec.Struct, frozen=True):
    """A version in a repository that a record says to be malware."""

    advisory: Advisory
    repository_id: int
    repository: str
    package: str
    version: str


def stored_malware(r: Reader, places: Mapping[advisories.Place, str]) -> list[Hit]:
    """What is stored in some repositories, given with their paths."""
    return [
        Hit(advisory, repository_id, places[repository_id, advisory.ecosystem], package, version)
        for repository_id, package, version, advisory in advisories.malware_in(r, list(places), MOST_FOUND)
    ]


def fetched_malware(r: Reader, format: str, ecosystem: str) -> list[Hit]:
    """What was fetched of a format of packages that have such records: of any of their versions."""
    rows = r.all(
        """
        SELECT DISTINCT i.repository_id, i.repository, i.package, i.version, a.data
        FROM download_item i CROSS JOIN advisory a
        WHERE i.format = ? AND a.ecosystem = ? AND a.package_key = i.package_key AND a.record >= ? AND a.record < ?
        ORDER BY i.repository, i.package, i.version LIMIT ?
        """,
        (format, ecosystem, MALWARE, NEXT, MOST_FOUND),
    )
    return [Hit(advisories.read_advisory(data), *rest) for *rest, data in rows]


def still_known(r: Reader, keys: Collection[Key]) -> set[Key]:
    """Which of some records are still stored."""
    found: set[Key] = set()
    for some in batches(sorted({each[0] for each in keys})):
        sql = f"SELECT record, ecosystem, package_key FROM advisory WHERE record IN ({marks_of(some)})"
        found.update((record, ecosystem, key) for record, ecosystem, key in r.all(sql, some))
    return found & {*keys}

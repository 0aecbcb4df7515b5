"""
Records of advisories that were sent to the server by themselves, ahead of the next export: a setting.

An export may be hours older than such a record. Until it has the record as it was sent, or a later one, it neither
removes nor replaces that; so one that was sent as withdrawn stays withdrawn, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model.advisories import Advisory
from pkgrepo.storage.catalog.advisories import modified_of, put_records
from pkgrepo.storage.catalog.server import settings

SENT: Final = "advisories_sent"  # the setting
MOST_SENT: Final = 2000


class Sent(msgspec.Struct, frozen=True):
    """By id, when each record was changed, as it says itself."""

    modified: Mapping[str, str] = {}

    def newer(self, record: str, modified: str) -> bool:
        """Whether a record was sent as it became after ``modified``; also if that is no time."""
        at = changed_at(self.modified.get(record, ""))
        return at is not None and ((other := changed_at(modified)) is None or other < at)


_decode = msgspec.json.Decoder(Sent).decode


def changed_at(modified: str) -> datetime | None:
    """The time at which a record was changed (RFC 3339); None for no such time."""
    try:
        at = datetime.fromisoformat(modified)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def read_sent(r: Reader) -> Sent:
    """All that no export has yet."""
    text = settings.get(r, SENT)
    return Sent() if text is None else _decode(text)


def take_record(tx: Transaction, record: str, modified: str, advisories: Sequence[Advisory], now_ms: int) -> None:
    """
    Store one record, in place of what was stored of it.

    :raises Invalid: it is older than that; :raises Conflict: no export has come for ``MOST_SENT`` records
    """
    found, at = read_sent(tx), changed_at(modified)
    if at is None or at.timestamp() * 1000 > now_ms + 24 * 3600 * 1000:  # no export would ever replace it
        raise Invalid("an OSV record was modified at some time, which has come", "/modified")
    stored = found.modified.get(record) or modified_of(tx, [record]).get(record, "")
    before = changed_at(stored)
    if before is not None and at < before:
        raise Invalid(f"this server has a later record {record}, of {stored}", "/modified")
    if record not in found.modified and len(found.modified) >= MOST_SENT:
        raise Conflict(f"{MOST_SENT} records were sent that the export does not have: refresh it")
    put_records(tx, [(record, advisories)])
    settings.put(tx, SENT, msgspec.json.encode(Sent({**found.modified, record: modified})).decode())


def put_of_export(tx: Transaction, records: Sequence[tuple[str, str, Sequence[Advisory]]], *, whole: bool) -> None:
    """Store records of an export, given with when they were changed; those that were sent as they became later stay."""
    found = read_sent(tx)
    put_records(tx, [(id_, some) for id_, modified, some in records if not found.newer(id_, modified)], whole=whole)


def remove_absent(tx: Transaction, ids: Sequence[str]) -> None:
    """Remove records that an export does not have; those that were sent stay."""
    found = read_sent(tx)
    put_records(tx, [(each, ()) for each in ids if each not in found.modified])


def forget(tx: Transaction, current: Mapping[str, str]) -> None:
    """Forget records that an export has, given as it has them, unless they were sent again meanwhile."""
    found = read_sent(tx)
    left = {each: at for each, at in found.modified.items() if each not in current or found.newer(each, current[each])}
    if len(left) != len(found.modified):
        settings.put(tx, SENT, msgspec.json.encode(Sent(left)).decode())

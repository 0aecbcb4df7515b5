"""Uses of canary tokens: events, rows of the audit log, and the latest of them in a setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor
from pkgrepo.storage.catalog.packages.events import append_server_event
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.audit import Entry, append_entry

from .tokens import find_token_by_uid
from .users import usernames

RINGS: Final = "canary_rings"  # the setting: JSON, the oldest first
MOST_RINGS: Final = 500
EVENT: Final = "token.canary"
REFUSED: Final = "refused"
_MINUTE_MS: Final = 60_000


class Ring(msgspec.Struct, frozen=True):
    """A use of a canary token, by its public id. ``name`` is that of the token then, ``owner`` that of its user."""

    token: str
    address: str
    client: str
    road: str
    at_ms: int
    name: str = ""
    owner: str = ""
    user_id: int = 0

    @property
    def place(self) -> tuple[str, str, int]:
        """What is reported once: the token, the address and the minute."""
        return self.token, self.address, self.at_ms // _MINUTE_MS


_decode = msgspec.json.Decoder(list[Ring]).decode


def list_rings(r: Reader) -> list[Ring]:
    """The latest uses, the oldest first."""
    text = settings.get(r, RINGS)
    return [] if text is None else _decode(text)


def write_rings(tx: Transaction, rings: Sequence[Ring]) -> list[Entry]:
    """
    Report uses that no other process has reported. Returns the rows of the audit log.

    Of a token that was removed meanwhile nothing is known any more.
    """
    stored = list_rings(tx)
    known = {each.place for each in stored}
    entries, new = list[Entry](), list[Ring]()
    for each in rings:
        token = find_token_by_uid(tx, each.token)
        if token is None or each.place in known:
            continue
        known.add(each.place)
        owner = usernames(tx, [token.user_id]).get(token.user_id, "")
        new.append(msgspec.structs.replace(each, name=token.name, owner=owner, user_id=token.user_id))
        detail = {"owner": owner, "road": each.road, "client": each.client}
        actor = Actor(name="anonymous", address=each.address)
        entries.append(Entry(actor, EVENT, token.name, REFUSED, detail))
        append_entry(tx, entries[-1], each.at_ms)
        data = {"name": token.name, "token": token.uid, "address": each.address, **detail}
        append_server_event(tx, EVENT, data, actor, each.at_ms)
    if new:
        settings.put(tx, RINGS, msgspec.json.encode([*stored, *new][-MOST_RINGS:]).decode())
    return entries

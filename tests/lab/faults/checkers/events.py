"""The log of events against the ledger: each acknowledged change has one event, and their numbers rise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from tests.lab.faults.ledger import Item, Ledger
from tests.lab.faults.writers import package_of, version_of
from tests.support.first_publishes import REPOSITORIES, Publisher

TYPES: Final = {"publish": "package.published", "delete": "package.deleted", "restore": "package.restored"}
PAGE: Final = 1000


def read_events(api: Publisher, types: str = "*") -> list[Mapping[str, Any]]:
    """All events, in the order in which the server lists them."""
    found: list[Mapping[str, Any]] = []
    after = "0"
    while True:
        answer = api.ask("GET", f"api/events?after={after}&limit={PAGE}&type={types}")
        page = [json.loads(line) for line in answer.text.splitlines()]
        found += page
        if "next" not in answer.links or not page:
            return found
        after = str(page[-1]["seq"])


def wrong_events(events: Sequence[Mapping[str, Any]], ledger: Ledger) -> Iterator[str]:
    """What the log has otherwise than the ledger of the writers."""
    numbers = [each["seq"] for each in events]
    yield from (f"event {later} follows event {earlier}" for earlier, later in pairwise(numbers) if later <= earlier)
    if len({each["id"] for each in events}) < len(events):
        yield "events have the same id"
    counts = Counter((_type(each), each["subject"]) for each in events)
    for (what, _), changes in ledger.changes.items():
        if what not in TYPES or changes.item is None:  # of what was never acknowledged there is one at most
            continue
        found = counts[TYPES[what], subject_of(changes.item)]
        if not changes.acknowledged <= found <= changes.begun:
            yield (
                f"{changes.item} has {found} events {TYPES[what]}; {what} was asked for {changes.begun} times, and"
                f" acknowledged {changes.acknowledged} times"
            )


def subject_of(item: Item) -> str:
    """How events name an item."""
    name, version = package_of(item.format, item.name), version_of(item.format, item.version)
    return f"main/{REPOSITORIES[item.format]}/{name}{':' if item.format == 'docker' else '@'}{version}"


def _type(event: Mapping[str, Any]) -> str:
    return str(event["type"]).removeprefix("pkgrepo.").removesuffix(".v1")

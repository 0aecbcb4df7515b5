"""What files tell of themselves, and what of that rules ask for: pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
from attrs import evolve, frozen

from pkgrepo.errors import Invalid
from pkgrepo.proxy.format import OwnFacts
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.conditions import INSIDE, SHAPE
from pkgrepo.repositories.policy.facts import PUBLISHED, declared, digests_of
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.rules import PackageRules
from pkgrepo.repositories.policy.schema import Datum
from pkgrepo.storage.catalog.file_facts import (
    LOCKED,
    FileFacts,
    place_of,
)


@frozen
class Wanted:
    """What is to be read of a file: ``data`` of rules, and digests by their ``algorithms``."""

    data: Collection[str] = ()
    algorithms: Collection[str] = ()

    def __bool__(self) -> bool:
        return bool(self.data or self.algorithms)

    def is_in(self, known: FileFacts | None) -> bool:
        """Whether all of it is known."""
        if known is None:
            return False
        declared = known.licences is not None or not {*self.data} - INSIDE - {"age"}
        dated = known.published_ms is not None or "age" not in self.data
        inside = known.contents is not None or "contents" not in self.data
        inside = inside and (known.is_read or not SHAPE & {*self.data})
        hashed = by_algorithm(known.digests).keys() >= {*self.algorithms}
        return (known.unreadable or (declared and dated)) and inside and hashed


def by_algorithm(digests: Iterable[str]) -> dict[str, str]:
    """The hex of digests of one file as rules name them, by algorithm."""
    return {name: value for name, _, value in (each.partition(":") for each in digests)}


def facts_told(format_: StoredFormat, own: OwnFacts, content: bytes, path: str) -> FileFacts:
    """
    All that a file tells of itself, by its bytes. Blocks.

    What cannot be read is as in a file of an upstream.
    """
    facts = FileFacts()
    if format_.inside is not None:
        try:
            found = format_.inside(content, path)
            facts = msgspec.structs.replace(facts, contents=tuple(sorted(found.words)), shape=found.shape)
        except Invalid:
            facts = msgspec.structs.replace(facts, contents=LOCKED)
    try:
        said = said_by(format_, own, own.read(content, path)) if own.data else {}
    except Invalid:
        return msgspec.structs.replace(facts, unreadable=True)
    return msgspec.structs.replace(facts, **said)


def said_by(format_: StoredFormat, own: OwnFacts, meta: Mapping[str, Any]) -> dict[str, Any]:
    """What metadata say, as far as only files of a format tell it."""
    if PUBLISHED in meta:
        return {"published_ms": meta[PUBLISHED]}
    says = declared(format_, meta, ())
    found = {"licences": tuple(says["licences"] or ()), "install_scripts": says["install_scripts"]}
    return {name: value for name, value in found.items() if name in own.data}


def asked_of_files(rules: PackageRules, own: frozenset[Datum]) -> frozenset[Datum]:
    """The data that rules ask for, of those that only files tell. A view of the past asks for the age of everything."""
    of_view: frozenset[Datum] = frozenset({"age"}) if rules.at_ms is not None else frozenset()
    return (rules.needs | of_view) & own


def of_former(judge: Judge, path: str, digests: Mapping[str, str]) -> bool:
    """Whether digests (hex) that are noted of a path are not those of the file that is there now."""
    known = digests_in(judge, place_of(judge.member.id, path))
    return bool(known and digests) and known.isdisjoint(digests_of(digests))


def without_former(judge: Judge, path: str) -> Judge:
    """The judge, which does not know what is noted of a path."""
    place = place_of(judge.member.id, path)
    return evolve(judge, facts={name: each for name, each in judge.facts.items() if name != place})


def digests_in(judge: Judge, name: str) -> frozenset[str]:
    """The digests that are noted by a name."""
    return frozenset(judge.facts.get(name, FileFacts()).digests)

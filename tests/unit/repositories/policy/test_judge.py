"""What files of upstreams tell of themselves decides once it is known."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pkgrepo.formats.python.format import python
from pkgrepo.model import RepositoryType
from pkgrepo.proxy.parts.values import Entry, FileSource
from pkgrepo.repositories.policy.conditions import Placed
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.rules import RuleSet
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.storage.catalog.file_facts import FileFacts, place_of
from tests.support.auth import make_repository

FORMAT = python()
MIRROR = make_repository(1)
SHA = "a" * 64
NAME, OTHER = f"sha256:{SHA}", f"sha256:{'b' * 64}"
GPL, MIT, NONE = FileFacts(licences=("GPL-3.0",)), FileFacts(licences=("MIT",)), FileFacts(licences=())
UNREADABLE = FileFacts(unreadable=True)


def served(facts: dict[str, FileFacts], rule: dict[str, Any]) -> bool:
    """Whether a file of an upstream is served, whose document tells nothing but its digest."""
    placed = Placed(msgspec.convert({"name": "r", **rule}, PolicyRule), MIRROR.path)
    rules = RuleSet([placed], order_of(FORMAT)).of("demo")
    assert rules is not None
    assert MIRROR.type is RepositoryType.HOSTED, "the type decides nothing here"
    judge = Judge(FORMAT, rules, MIRROR, 0, own=FORMAT.proxied.own_facts.data, facts=facts)
    file = FileSource("demo/1.0/demo-1.0.tar.gz", "http://there.example/x", None, {"sha256": SHA}, "", {})
    return judge.of_entry(Entry(b"", "x", "1.0", None, False, {}, [file]), "there").served


@pytest.mark.parametrize(
    ("facts", "allowing", "blocking"),
    [
        ({}, True, True),
        ({OTHER: GPL}, True, True),
        ({NAME: FileFacts(digests=(NAME,))}, True, True),
        ({NAME: MIT}, True, True),
        ({NAME: GPL}, False, False),
        ({place_of(MIRROR.id, "1.0"): GPL}, False, False),
        ({place_of(MIRROR.id, "2.0"): GPL}, True, True),
        ({place_of(2, "1.0"): GPL}, True, True),
        ({NAME: NONE}, True, False),
        ({NAME: UNREADABLE}, False, False),
    ],
    ids=range(10),
)
def test_a_document_shows_a_file_until_something_is_known_that_a_rule_is_about(
    facts: dict[str, FileFacts], allowing: bool, blocking: bool
) -> None:
    licences = {"match": {"licences": ["GPL*"]}}
    assert served(facts, licences) is allowing
    assert served(facts, {**licences, "missing": "block"}) is blocking


def test_digests_that_are_noted_of_a_file_are_its_own() -> None:
    rule = {"match": {"digests": ["sha512:" + "c" * 128]}}
    assert served({}, rule)
    assert served({OTHER: FileFacts(digests=("sha512:" + "c" * 128,))}, rule)
    assert not served({NAME: FileFacts(digests=("sha512:" + "c" * 128,))}, rule)
    about_all = {place_of(MIRROR.id, "1.0"): FileFacts(digests=("sha512:" + "c" * 128,))}
    assert served(about_all, rule), "each file of a version has other digests"

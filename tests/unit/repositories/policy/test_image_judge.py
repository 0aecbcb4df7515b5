"""Which manifests around one decide about it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from pkgrepo.formats.container.format import container
from pkgrepo.model import Repository
from pkgrepo.repositories.images.manifests import put_manifest
from pkgrepo.repositories.images.push import Push, Reference
from pkgrepo.repositories.policy.conditions import Placed
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.image_judge import ImageJudge
from pkgrepo.repositories.policy.rules import RuleSet
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.storage.catalog.images.manifests import ManifestRecord
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob
from tests.support.images import digest_of


class Image:
    """The image ``app``; the content of each manifest and blob is its name. No version ``bad`` is served."""

    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.repository: Repository = self.catalog.do(add_repository)
        rule = msgspec.convert({"name": "r", "match": {"versions": "bad"}}, PolicyRule)
        rules = RuleSet([Placed(rule, self.repository.path)], order_of(container())).of("app")
        assert rules is not None
        self.judge = ImageJudge(rules, self.repository, "app", NOW)

    def put(self, name: str, part: str, kind: str = "manifest", *, tag: str = "") -> None:
        blob, digest = make_blob(name.encode()), digest_of(part.encode())
        record = ManifestRecord(
            digest=f"sha256:{blob.sha256}",
            sha256=blob.sha256,
            media_type="application/x",
            size=blob.size,
            subject=None,
            references=((digest, kind),),
        )
        required = (Reference(digest, kind, len(part)),) if kind == "manifest" else ()
        push = Push(manifest=record, blob=blob, required=required, tags=(tag,) if tag else ())
        self.catalog.do(put_manifest, self.repository, "app", push, admitted(self.repository), NOW)

    def served(self, *names: str) -> list[bool]:
        """Whether manifests are served, and last the layer of the first."""
        verdicts: list[Any] = [self.catalog.peek(self.judge.of_reference, digest_of(each.encode())) for each in names]
        layer = self.catalog.peek(self.judge.of_blob, digest_of(b"layer"))
        return [each.served for each, _, _ in verdicts] + [layer.served]


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_manifest_in_indexes_in_indexes_is_refused_if_all_that_have_it_are(levels: int) -> None:
    image = Image()
    names = ["manifest", *(f"index {level}" for level in range(levels))]
    image.put("manifest", "layer", "layer")
    for below, each in pairwise(names):
        image.put(each, below, tag="bad" if each == names[-1] else "")
    assert image.served(*names) == [False] * (levels + 2)
    image.put("another index", "manifest", tag="good")
    assert image.served("manifest") == [True, True]
    assert image.served(*names[1:]) == [False] * levels + [True]


def test_what_lies_deeper_than_is_looked_at_is_refused() -> None:
    image = Image()
    names = ["manifest", *(f"index {level}" for level in range(6))]
    image.put("manifest", "layer", "layer")
    for below, each in pairwise(names):
        image.put(each, below, tag="bad" if each == names[-1] else "")
    assert image.served("manifest", "index 5") == [False, False, False]
    image.put("another index", "manifest", tag="good")
    assert image.served("manifest") == [True, True]


def test_so_many_levels_are_looked_at_however_many_there_are() -> None:
    reads = []
    for levels in (6, 12):
        image = Image()
        names = ["manifest", *(f"index {level}" for level in range(levels))]
        for below, each in pairwise(["layer", *names]):
            image.put(each, below, "layer" if below == "layer" else "manifest")
        before = image.catalog.tx.statements
        image.served("manifest")
        reads.append(image.catalog.tx.statements - before)
    assert reads[0] == reads[1]

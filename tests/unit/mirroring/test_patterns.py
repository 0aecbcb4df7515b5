"""Which packages of a proxy patterns are about."""

from __future__ import annotations

import pytest

from pkgrepo.mirroring import patterns
from pkgrepo.storage.catalog.packages.packages import ensure_package
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository

KEPT = ("acme-a", "Acme-B", "beta", "gamma")


def named(*wanted: str) -> tuple[list[str], int]:
    catalog = MemoryCatalog()
    repository = catalog.do(add_repository)
    for each in KEPT:
        catalog.do(ensure_package, repository.id, key=each.lower(), name=each, serial=1, now_ms=NOW)
    return catalog.peek(patterns._named, repository.id, wanted)


@pytest.mark.parametrize("batch", [1, 3, 500])
def test_names_are_named_and_patterns_fit_what_is_kept(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "BATCH", batch)
    assert named("absent", "beta") == (["absent", "beta"], 0)  # whether or not they are kept
    assert named("beta", "ACME-*", "?eta") == (["beta", "acme-a", "Acme-B"], 0)
    assert named("zeta*") == ([], 0)


def test_what_is_too_many_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_NAMES", 2)
    assert named("absent", "acme-*", "*a") == (["absent", "acme-a"], 3)
    assert named("a", "b", "c") == (["a", "b"], 1)

"""Values are written as the columns from which they are read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pkgrepo.interfaces import Transaction
from pkgrepo.model import Action
from pkgrepo.storage.catalog.rows import batches, insert, only_row, scalar, update
from tests.support.catalog import MemoryCatalog

AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (None, None),
        (7, 7),
        ("x", "x"),
        (b"x", b"x"),
        (True, 1),
        (AT, 1767312000000),
        ({"b": 1}, '{"b":1}'),
        (("b", "a"), '["b","a"]'),
        (frozenset({Action.WRITE, Action.READ}), '["read","write"]'),
    ],
)
def test_a_value_is_converted_for_its_column(value: Any, stored: Any) -> None:
    def write(tx: Transaction) -> tuple[Any, Any]:
        tx.execute("CREATE TABLE sample (id INTEGER PRIMARY KEY, a, b)")
        key = insert(tx, "sample", a=value, b=1)
        update(tx, "sample", key, b=value)
        return only_row(tx, "SELECT a, b FROM sample WHERE id = ?", (key,))

    assert MemoryCatalog().do(write) == (stored, stored)


def test_the_value_of_no_row_is_none() -> None:
    assert MemoryCatalog().peek(scalar, "SELECT id FROM repository WHERE id = 0") is None


def test_batches_have_at_most_their_size() -> None:
    assert [list(each) for each in batches(range(5), 2)] == [[0, 1], [2, 3], [4]]

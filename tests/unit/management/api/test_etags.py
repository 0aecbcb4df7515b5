"""ETags of records, and If-Match."""

from __future__ import annotations

import pytest

from pkgrepo.management.api.problems import PreconditionFailed
from pkgrepo.management.api.schema import Record, check_unchanged, tag_of


class Thing(Record):
    name: str
    uses: int

    measured = frozenset({"uses"})


def test_a_tag_depends_on_all_fields_but_if_match_compares_no_measured_ones() -> None:
    thing, used, renamed = Thing(name="a", uses=1), Thing(name="a", uses=2), Thing(name="b", uses=1)
    tags = {tag_of(each) for each in (thing, used, renamed)}
    assert len(tags) == 3
    check_unchanged(tag_of(thing), used)
    check_unchanged(None, renamed)
    check_unchanged(b"*", renamed)
    for condition in (tag_of(thing), b"nonsense", b'""', b'W/"x"'):
        with pytest.raises(PreconditionFailed):
            check_unchanged(condition, renamed)


def test_a_tag_does_not_depend_on_the_order_of_keys() -> None:
    assert tag_of({"a": 1, "b": {"c": 2, "d": 3}}) == tag_of({"b": {"d": 3, "c": 2}, "a": 1})

"""TOML documents from outside."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.toml import read_toml


def test_a_document_is_a_table():
    assert read_toml('a = 1\n[b]\nc.d = ["e"]\n') == {"a": 1, "b": {"c": {"d": ["e"]}}}


@pytest.mark.parametrize(
    ("text", "why"),
    [("a", "no TOML document"), ("a = 1\na = 2", "no TOML document"), ("a = " + "[" * 10_000, "no TOML document")],
)
def test_another_text_is_refused(text, why):
    with pytest.raises(Invalid, match=why):
        read_toml(text)


def test_a_key_of_many_parts_is_refused_before_it_takes_its_square():
    with pytest.raises(Invalid, match="too many parts"):
        read_toml("a" + ".b" * 100_000 + " = 1")

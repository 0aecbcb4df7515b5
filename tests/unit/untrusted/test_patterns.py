"""Patterns of fields in words."""

from __future__ import annotations

import msgspec
import pytest

from pkgrepo.errors import Invalid
from pkgrepo.management.api.schema import Name, parse_fields
from pkgrepo.untrusted.patterns import in_words


def test_a_message_has_words_in_place_of_a_pattern() -> None:
    with pytest.raises(Invalid) as refused:
        parse_fields({"name": "-"}, msgspec.defstruct("Named", [("name", Name)]))
    assert refused.value.pointer == "/name"
    assert str(refused.value).startswith("Expected 1 to 64 letters")
    assert in_words("Expected `str` matching regex '^unknown$'") == "Expected a text of another form"
    assert in_words("Expected `int`, got `str`") == "Expected `int`, got `str`"

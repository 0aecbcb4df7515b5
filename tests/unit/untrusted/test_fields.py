"""What is of another kind is left out."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.fields import (
    MOST_ITEMS,
    absolute_url,
    flag_in,
    form_fields,
    list_of,
    object_of,
    text_in,
    texts_in,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a\x00b\u2028", "ab"), (1.5, "1.5"), (7, "7"), (True, ""), (None, ""), ([], ""), ("a\nb", "a\nb")],
)
def test_texts(value, expected):
    assert text_in(value) == expected


def test_flags_are_true_as_yaml_writes_it():
    assert [each for each in (True, "true", "True", 1, "yes", False, None) if flag_in(each)] == [True, "true", "True"]


def test_lists_and_objects_have_what_is_of_their_kind():
    read = object_of({"a": list_of(text_in), "b": texts_in, "c": object_of({"d": flag_in})})
    assert read({"a": ["x", None, {}], "b": {"k": "v", "n": [], 5: "x"}, "c": {"d": "true", "e": 1}, "z": 1}) == {
        "a": ["x"],
        "b": {"k": "v"},
        "c": {"d": True},
    }
    assert read("text") == {}
    assert len(list_of(text_in)(["x"] * (MOST_ITEMS + 1))) == MOST_ITEMS


@pytest.mark.parametrize("url", [None, 5, "ftp://a.example/x", "http:///x", "http://[x"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(Invalid):
        absolute_url("https://a.example/b/", url)


def test_the_fields_of_a_form_are_bounded() -> None:
    assert form_fields("a=1&b=&a=2", 3) == {"a": ["1", "2"]}
    assert form_fields("b=", 3, keep_blank_values=True) == {"b": [""]}
    with pytest.raises(Invalid, match="more than 3 fields"):
        form_fields("a=1&a=2&a=3&a=4", 3)

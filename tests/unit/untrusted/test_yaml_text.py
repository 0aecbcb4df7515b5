"""YAML of others is read as texts, within limits."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.untrusted import yaml_text
from pkgrepo.untrusted.yaml_text import read_yaml


def test_documents_have_so_many_values_and_levels_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "MOST_DEPTH", 3)
    assert read_yaml("a: [b]") == {"a": ["b"]}
    with pytest.raises(Invalid, match="nested too deeply"):
        read_yaml("a: [[b]]")
    monkeypatch.setattr(
        yaml_text, "MOST_EVENTS", 7
    )  # the ends of collections, of the document and of the text are some
    assert read_yaml("a: b") == {"a": "b"}
    with pytest.raises(Invalid, match="too many values"):
        read_yaml("a: b\nc: d")
    with pytest.raises(Invalid, match="too many directives"):
        read_yaml("\n%TAG ! tag:x" * 11)


def test_values_of_yaml_are_texts() -> None:
    assert read_yaml("a: 1\nb: ~\nc: '~'\n? [d]\n: e\nf:\n  - true\n") == {
        "a": "1", "b": None, "c": "~", None: "e", "f": ["true"],
    }  # fmt: skip
    assert read_yaml("") is None
    for text in ("a: &x 1\nb: *x", "a: [", "a: b: c"):
        with pytest.raises(Invalid):
            read_yaml(text)


def test_an_alias_is_the_same_value_where_it_may_be() -> None:
    found = read_yaml("a: &x {b: '1'}\nc: [*x, *x]\nd: &y [*y]\n", aliases=True)
    assert found["c"] == [{"b": "1"}] * 2
    assert found["d"][0] is found["d"]
    with pytest.raises(Invalid):
        read_yaml("a: *x", aliases=True)

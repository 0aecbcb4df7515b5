"""YAML of others is read as texts, within limits."""

import subprocess
import sys

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


FAILING = """
import errno, sys
from pkgrepo.untrusted.yaml_text import load_yaml

missing, error = sys.argv[1], {"OSError": OSError(errno.EMFILE, "x"), "ImportError": ImportError("x")}[sys.argv[2]]

class Failing:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == missing:
            raise error

sys.meta_path.insert(0, Failing)
try:
    load_yaml()
except (OSError, ImportError):
    sys.meta_path.remove(Failing)
    print(load_yaml().load("a: 1", Loader=load_yaml().CSafeLoader))
"""


@pytest.mark.parametrize("error", ["OSError", "ImportError"])
@pytest.mark.parametrize("name", ["yaml", "yaml.error", "yaml.loader", "yaml.cyaml", "yaml._yaml"])
def test_an_import_that_fails_halfway_is_whole_the_next_time(name: str, error: str) -> None:
    command = [sys.executable, "-c", FAILING, name, error]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "{'a': 1}\n", done.stderr

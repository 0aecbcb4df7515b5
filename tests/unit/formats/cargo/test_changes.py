"""What a client says of a crate that it sends."""

import json

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.cargo.changes import read_description
from tests.support.crates import describe

DEPENDENCY = {
    "name": "real",
    "version_req": "^1",
    "features": ["a"],
    "optional": True,
    "default_features": False,
    "target": "cfg(unix)",
    "kind": "build",
    "registry": "sparse+https://other.example/",
    "explicit_name_in_toml": "alias",
    "artifact": None,
}


def test_a_description_becomes_a_line_of_the_index():
    found = read_description(json.dumps(describe("Demo", "1.0.0", deps=[DEPENDENCY], authors=["a"])).encode())
    assert found.line() == {
        "name": "Demo",
        "vers": "1.0.0",
        "deps": [
            {
                "name": "alias",
                "req": "^1",
                "features": ["a"],
                "optional": True,
                "default_features": False,
                "target": "cfg(unix)",
                "kind": "build",
                "registry": "sparse+https://other.example/",
                "package": "real",
            }
        ],
        "features": {},
    }


def test_a_dependency_under_its_own_name_is_of_the_same_registry():
    plain = {"name": "a", "version_req": "*", "kind": None, "explicit_name_in_toml": None}
    (line,) = read_description(json.dumps(describe("demo", "1.0.0", deps=[plain])).encode()).line()["deps"]
    assert (line["name"], line["kind"], line["registry"], "package" in line) == ("a", "normal", None, False)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "is not what it should be"),
        (b'{"name":"demo","vers":"1.0.0"}', "deps"),
        (json.dumps(describe("de mo", "1.0.0")).encode(), "invalid crate name"),
        (json.dumps(describe("demo", "1.0")).encode(), "MAJOR.MINOR.PATCH"),
        (json.dumps(describe("demo", "1.0.0", features=[])).encode(), "features"),
        (json.dumps(describe("demo", "1.0.0", deps=[{"name": "a"}])).encode(), "version_req"),
        (json.dumps(describe("demo", "1.0.0", links=1)).encode(), "links"),
    ],
)
def test_a_description_that_cannot_be_used_is_refused_with_the_reason(body, why):
    with pytest.raises(Invalid) as refused:
        read_description(body)
    assert why in str(refused.value)

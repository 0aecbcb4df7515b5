"""Advisories of upstreams."""

import json
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.audit import requests
from pkgrepo.formats.npm.audit.matching import patched_versions, quick_response, read_tree, versions_in
from pkgrepo.formats.npm.semver import parse_version

ENTRY = {
    "id": 1094544,
    "url": "https://advisories.example/GHSA-vh95-rmgr-6w4m",
    "title": "It bites",
    "severity": "high",
    "vulnerable_versions": "<1.2.0",
    "cwe": ["CWE-1"],
    "cvss": {"score": 5.6, "vectorString": "CVSS:3.1/AV:N"},
}
TREE = {
    "name": "our-project",
    "version": "1.0.0",
    "dependencies": {
        ".": {  # as pnpm has the importers of a workspace
            "version": "0.0.0",
            "dependencies": {"a": {"version": "1.0.0", "dev": True, "dependencies": {"b": {"version": "2.0.0"}}}},
        },
        "a": {"version": "1.3.0"},
        "elsewhere": {"version": "git+ssh://host.example/x"},
    },
}


def test_versions_in_a_tree_are_those_of_all_levels_that_a_registry_knows() -> None:
    tree = read_tree(json.dumps(TREE).encode())
    assert {name: sorted(each) for name, each in versions_in(tree).items()} == {"a": ["1.0.0", "1.3.0"], "b": ["2.0.0"]}


def test_answers_about_other_packages_are_ignored() -> None:
    body = json.dumps({"a": [{}], "unasked": [{}]}).encode()
    assert list(requests.read_bulk_response(body, ["a"])) == ["a"]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"<html>", b'{"a":"\xff"}', b"{" * 9999, b'{"error":"no"}', b'{"a":[1]}', b'{"a":{}}']
)
def test_answer_that_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        requests.read_bulk_response(body, ["a"])


def test_tree_is_answered_with_the_advisories_of_an_upstream() -> None:
    tree = read_tree(json.dumps(TREE).encode())
    answer = quick_response(tree, {"a": [requests.read_advisory("a", ENTRY)]})
    (advisory,) = answer["advisories"].values()
    assert answer["advisories"].keys() == {"1094544"}
    assert [(each["version"], each["paths"], each["dev"]) for each in advisory["findings"]] == [
        ("1.0.0", [".>a"], True)
    ]
    assert (advisory["module_name"], advisory["severity"], advisory["title"]) == ("a", "high", "It bites")
    assert (advisory["vulnerable_versions"], advisory["patched_versions"]) == ("<1.2.0", ">=1.2.0")
    assert advisory["github_advisory_id"] == "GHSA-vh95-rmgr-6w4m"
    assert answer["metadata"]["vulnerabilities"]["high"] == 1
    assert answer["actions"][0]["resolves"] == [
        {"id": 1094544, "path": ".>a", "dev": True, "optional": False, "bundled": False}
    ]


@pytest.mark.parametrize("entry", [{}, {"severity": "dreadful", "id": [], "cvss": 7, "cwe": "x"}])
def test_what_an_advisory_does_not_say_is_taken_for_the_worst(entry: dict[str, Any]) -> None:
    found = requests.read_advisory("a", entry)
    assert found.severity == "critical"
    assert found.affects(parse_version("1.0.0").sort)
    assert patched_versions(found) == "<0.0.0"


@pytest.mark.parametrize(
    ("text", "hit", "missed"),
    [
        ("<1.2.0", ["0.0.1", "1.1.9", "1.2.0-rc.1"], ["1.2.0"]),
        ("< 1.2", ["1.1.9"], ["1.2.0"]),
        (">=1.0.0 <1.2.0", ["1.0.0"], ["0.9.9", "1.2.0"]),
        (">= 1.0.0, < 1.2.0", ["0.9.9", "7.0.0"], []),  # not npm's syntax
        (">1.0.0 <=1.2.0", ["1.0.1-a", "1.2.0"], ["1.0.0", "1.2.1"]),
        (">1.0.0-a", ["1.0.0-a.0", "1.0.0"], ["1.0.0-a"]),
        ("=1.0.0 || 2.0.0 || >=3", ["1.0.0", "2.0.0", "3.1.0"], ["1.0.1", "2.0.1", "2.9.9"]),
        ("<2.0.0 <=1.0.0", ["1.0.0"], ["1.5.0"]),
        ("*", ["1.0.0"], []),
        ("", ["1.0.0"], []),
        ("^1.0.0", ["1.0.0", "9.0.0"], []),
        ("<0.0.0", [], ["1.0.0", "0.0.0"]),
    ],
)
def test_ranges(text: str, hit: list[str], missed: list[str]) -> None:
    ranges = requests.read_ranges(text)
    keys = {each: parse_version(each).sort for each in (*hit, *missed)}
    found = [each for each, key in keys.items() if any(low <= key < high for _, (low, high) in ranges)]
    assert found == hit


def test_tree_without_versions_has_the_names_of_what_is_required() -> None:
    assert versions_in(read_tree(b'{"name":"p","requires":{"a":"^1"},"metadata":{}}')) == {"a": []}
    assert versions_in(read_tree(b'{"name":"p","requires":true}')) == {}

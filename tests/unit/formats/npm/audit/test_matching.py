"""Audits answered from advisories."""

import json
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.audit import matching
from pkgrepo.formats.npm.audit.matching import (
    Index,
    bulk_response,
    number_of,
    patched_versions,
    quick_response,
    read_bulk,
    read_tree,
)
from pkgrepo.formats.npm.facts import ECOSYSTEM
from pkgrepo.formats.npm.limits import AuditLimits
from pkgrepo.model.advisories import Advisory
from pkgrepo.repositories.advisories.records import read_record
from tests.support.osv_records import affected, since
from tests.support.osv_records import record as osv_record


def record(*events: dict[str, str], id: str = "GHSA-1", package: str = "x", **fields: Any) -> bytes:
    document = osv_record(id, affected("npm", package, *events, kind="SEMVER"), summary="Bad thing", **fields)
    return json.dumps(document).encode()


def read(data: bytes) -> tuple[Advisory, ...]:
    return read_record(data, {"npm": ECOSYSTEM}).advisories


@pytest.mark.parametrize(
    ("events", "patched"),
    [
        (since("0", "1.5.0"), ">=1.5.0"),
        (since("0", last="1.0.0"), "<0.0.0"),
        (since("1.0.0"), "<0.0.0"),
        ([*since("0", "1.0.0"), *since("1.5.0", "2.0.0")], ">=2.0.0"),
        ([*since("0", "1.5.0"), *since("2.0.0")], "<0.0.0"),
    ],
)
def test_patched_versions_are_those_from_the_last_fix_on(events: list[dict[str, str]], patched: str) -> None:
    (found,) = read(record(*events))
    assert patched_versions(found) == patched


def book(*records: bytes) -> Index:
    found: dict[str, list[Advisory]] = {}
    for each in records:
        for one in read(each):
            found.setdefault(one.package, []).append(one)
    return found


BOOK = book(
    record(
        {"introduced": "0"},
        {"fixed": "1.5.0"},
        aliases=["CVE-2026-1"],
        database_specific={"severity": "HIGH", "cwe_ids": ["CWE-79"]},
    ),
    record({"introduced": "0"}, {"fixed": "1.0.0"}, id="GHSA-2"),
    record({"introduced": "0"}, id="MAL-1", package="@sc/evil"),
)


def test_bulk_audit_lists_matching_advisories() -> None:
    asked = read_bulk(b'{"x":["1.2.0","2.0.0"],"@sc/evil":["9.9.9"],"fine":["1.0.0"],"odd":["*"]}')
    answer = bulk_response(asked, BOOK)
    assert set(answer) == {"x", "@sc/evil"}
    (entry,) = answer["x"]
    assert entry.pop("id") == number_of("GHSA-1")
    assert entry == {
        "url": "https://osv.dev/vulnerability/GHSA-1",
        "title": "Bad thing",
        "severity": "high",
        "vulnerable_versions": "<1.5.0",
        "cwe": ["CWE-79"],
        "cvss": {"score": 0.0, "vectorString": None},
    }
    assert bulk_response({"x": ["0.1.0"]}, BOOK).keys() == {"x"}
    assert len(bulk_response({"x": ["2.0.0", "0.1.0"]}, BOOK)["x"]) == 2
    assert bulk_response(asked, {}) == {}


def test_numbers_of_advisories_are_stable_and_exact_in_javascript() -> None:
    numbers = {number_of(f"GHSA-{n}") for n in range(100)}
    assert len(numbers) == 100
    assert max(numbers) < 2**53
    assert number_of("GHSA-7") in numbers


def test_a_vulnerability_in_two_databases_is_told_once_and_without_severity_as_moderate() -> None:
    found = book(record(*since("0")), record(*since("0"), id="PYSEC-1"))
    assert [each["severity"] for each in bulk_response({"x": ["1.0.0"]}, found)["x"]] == ["moderate", "moderate"]
    together = {"x": [evolve(each, shown_as="GHSA-1") for each in found["x"]]}
    assert [each["url"][-6:] for each in bulk_response({"x": ["1.0.0"]}, together)["x"]] == ["GHSA-1"]


@pytest.mark.parametrize("body", [b"", b"[]", b'{"x":"1"}', b'{"x":[1]}', b"{"])
def test_malformed_bulk_request_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        read_bulk(body)


TREE = {
    "name": "app",
    "version": "1.0.0",
    "requires": {"x": "^1.0.0"},
    "dependencies": {
        "x": {"version": "1.2.0", "requires": {"y": "1"}, "dependencies": {"y": {"version": "1.0.0"}}},
        "tool": {"version": "1.0.0", "dev": True, "dependencies": {"x": {"version": "1.2.0", "dev": True}}},
        "maybe": {"version": "1.0.0", "optional": True},
    },
}


def test_quick_audit_lists_the_paths() -> None:
    answer = quick_response(read_tree(json.dumps(TREE).encode()), BOOK)
    assert answer["muted"] == []
    assert [each["path"] for action in answer["actions"] for each in action["resolves"]] == ["tool>x", "x"]
    assert answer["metadata"] == {
        "vulnerabilities": {"info": 0, "low": 0, "moderate": 0, "high": 2, "critical": 0},
        "dependencies": 2,
        "devDependencies": 2,
        "optionalDependencies": 1,
        "totalDependencies": 5,
    }
    number = number_of("GHSA-1")
    assert list(answer["advisories"]) == [str(number)]
    entry = answer["advisories"][str(number)]
    (finding,) = entry["findings"]
    assert finding["version"] == "1.2.0"
    assert sorted(finding["paths"]) == ["tool>x", "x"]
    assert not finding["dev"]
    assert entry["module_name"] == "x"
    assert entry["patched_versions"] == ">=1.5.0"
    assert entry["recommendation"] == "Upgrade to version 1.5.0 or later"
    assert entry["cves"] == ["CVE-2026-1"]
    assert entry["github_advisory_id"] == "GHSA-1"


def test_quick_audit_of_an_empty_tree_has_all_keys() -> None:
    for body in (b"{}", json.dumps({"dependencies": {"fine": {"version": "1.0.0"}}}).encode()):
        answer = quick_response(read_tree(body), BOOK)
        assert answer["advisories"] == {}
        assert set(answer["metadata"]["vulnerabilities"]) == {"info", "low", "moderate", "high", "critical"}


def test_number_of_paths_is_limited() -> None:
    wide = {f"d{n}": {"version": "1.0.0", "dependencies": {"x": {"version": "1.0.0"}}} for n in range(200)}
    answer = quick_response(read_tree(json.dumps({"dependencies": wide}).encode()), BOOK)
    (entry,) = answer["advisories"].values()
    assert len(entry["findings"][0]["paths"]) == 50
    assert answer["metadata"]["vulnerabilities"]["high"] == 200


def test_work_of_an_audit_is_limited() -> None:
    for read in (read_bulk, read_tree):
        with pytest.raises(Invalid, match="more than 20 values"):
            read(json.dumps({"x": ["1.0.0"] * 21}).encode(), AuditLimits(values=20))
    few = AuditLimits(compared=6)
    assert bulk_response({"x": ["1.0.0", "1.1.0", "1.2.0"], "fine": ["1.0.0"] * 9}, BOOK, few)
    assert bulk_response({"x": ["1.0.0"] * 100}, BOOK, few)
    with pytest.raises(Invalid, match="6 versions held against advisories at most"):
        bulk_response({"x": ["1.0.0", "1.1.0", "1.2.0"], "@sc/evil": ["1.0.0"]}, BOOK, few)
    few = AuditLimits(advisories=2)
    assert len(bulk_response({"x": ["0.1.0"]}, BOOK, few)["x"]) == 2
    with pytest.raises(Invalid, match="told 2 advisories at most"):
        bulk_response({"x": ["0.1.0"], "@sc/evil": ["1.0.0"]}, BOOK, few)


def test_size_of_a_tree_is_limited() -> None:
    assert quick_response(read_tree(json.dumps(TREE).encode()), BOOK, AuditLimits(nodes=5))
    with pytest.raises(Invalid, match="more than 4 packages"):
        quick_response(read_tree(json.dumps(TREE).encode()), BOOK, AuditLimits(nodes=4))


def test_length_of_all_paths_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths beyond the limit are not even built: many packages below a long name would fill the memory."""
    children = {"x": {"version": "1.0.0"}, **{f"c{n}": {"version": "1.0.0"} for n in range(100)}}
    tree = read_tree(json.dumps({"dependencies": {"n" * 1000: {"dependencies": children}}}).encode())
    made: list[str] = []
    path = matching._Place.path
    monkeypatch.setattr(matching._Place, "path", lambda place: made.append(path(place)) or made[-1])
    (entry,) = quick_response(tree, BOOK)["advisories"].values()
    assert entry["findings"][0]["paths"] == made == ["n" * 1000 + ">x"]
    (entry,) = quick_response(tree, BOOK, AuditLimits(paths_size=1001))["advisories"].values()
    assert entry["findings"][0]["paths"] == []
    assert len(made) == 1

"""Records of OSV: which versions they affect, in the order of each format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from pkgrepo.errors import Invalid
from pkgrepo.model.advisories import Advisory, distinct
from pkgrepo.repositories.advisories.records import read_record
from pkgrepo.repositories.format import Ecosystem
from tests.support.osv_records import (
    LOG4J,
    MINIMIST,
    NOKOGIRI,
    PY,
    PY_WITHDRAWN,
    RACK,
    REQUESTS,
    affected,
    record,
    since,
)

FORMATS = {each.ecosystem.name: each for each in make_formats(Config()).values() if each.ecosystem is not None}
ECOSYSTEMS: dict[str, Ecosystem] = {name: each.ecosystem for name, each in FORMATS.items() if each.ecosystem}
VECTOR = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"


def read(document: Any) -> list[Advisory]:
    return list(read_record(json.dumps(document).encode(), ECOSYSTEMS).advisories)


def one(*events: Any, ecosystem: str = "npm", **fields: Any) -> Advisory:
    part = affected(ecosystem, "x", *events, **fields.pop("affected", {}))
    (found,) = read(record("GHSA-1", part, summary="Bad thing", **fields))
    return found


def hit(found: Advisory, *versions: str) -> list[str]:
    """Those of the versions that are affected, by the keys that repositories store."""
    kinds = FORMATS[found.ecosystem].versions
    assert kinds is not None
    return [each for each in versions if found.affects(kinds.sort(each))]


def test_formats_with_records_are_those_of_the_database() -> None:
    assert sorted(ECOSYSTEMS) == ["Go", "Maven", "PyPI", "RubyGems", "crates.io", "npm"]


@pytest.mark.parametrize(
    ("document", "package", "vulnerable", "free"),
    [
        (
            MINIMIST,
            "minimist",
            ["0.0.8", "0.2.0", "1.0.0", "1.2.2", "1.2.3-rc.1"],
            ["0.2.1", "0.2.4", "1.2.3", "1.2.8"],
        ),
        (REQUESTS, "requests", ["2.3.0", "2.30", "2.31.0rc1", "2.30.0+local.1"], ["2.2.1", "2.31", "2.31.0.post1"]),
        (PY, "py", ["0.9", "1.11", "1.11.0", "1.11.0+debian"], ["1.11.0.post1", "1.11.1", "2.0"]),
        (
            LOG4J,
            "org.apache.logging.log4j:log4j-core",
            ["2.0-beta9", "2.0-rc1", "2.0", "2.3", "2.4", "2.12.1", "2.13.0", "2.14.1", "2.15.0-SNAPSHOT"],
            ["1.2.17", "2.0-beta8", "2.3.1", "2.12.2", "2.12.4", "2.15.0", "2.17.1"],
        ),
        (
            RACK,
            "rack",
            ["1.6.13", "2.0.9", "2.1.0", "2.1.4", "2.2.3", "2.2.3.1.pre"],
            ["2.0.9.1", "2.0.9.4", "2.1.4.1", "2.2.3.1", "3.0.0"],
        ),
        (NOKOGIRI, "nokogiri", ["1.13.5", "1.13.5-x86_64-linux", "1.13.6.rc1-java"], ["1.13.6", "1.13.6-x86_64-linux"]),
    ],
)
def test_published_advisories_affect_what_they_say(
    document: Any, package: str, vulnerable: list[str], free: list[str]
) -> None:
    found = read(document)
    assert {each.package for each in found} == {package}
    (only,) = found
    assert hit(only, *vulnerable, *free) == vulnerable


def test_ranges_and_fixed_versions_are_in_the_order_of_versions() -> None:
    (found,) = read(LOG4J)
    assert found.affected == ">=2.0-beta9 <2.3.1 || >=2.4 <2.12.2 || >=2.13.0 <2.15.0"
    assert found.fixed_versions == ["2.3.1", "2.12.2", "2.15.0"]


@pytest.mark.parametrize(
    ("events", "affected_", "range_", "fixed", "open_end"),
    [
        ([{"introduced": "0"}, {"fixed": "1.5.0"}], ["0.0.1", "1.0.0", "1.5.0-rc.1"], "<1.5.0", ["1.5.0"], False),
        ([{"introduced": "1.0.0"}, {"fixed": "1.5.0"}], ["1.0.0", "1.5.0-rc.1"], ">=1.0.0 <1.5.0", ["1.5.0"], False),
        ([{"introduced": "0"}, {"last_affected": "1.0.0"}], ["0.0.1", "1.0.0"], "<=1.0.0", [], False),
        ([{"introduced": "1.0.0"}], ["1.0.0", "1.5.0-rc.1", "1.5.0", "2.0.0"], ">=1.0.0", [], True),
        ([{"introduced": "0"}], ["0.0.1", "1.0.0", "1.5.0-rc.1", "1.5.0", "2.0.0"], "*", [], True),
        (
            [{"fixed": "2.0.0"}, {"introduced": "1.5.0"}, {"fixed": "1.0.0"}, {"introduced": "0"}],
            ["0.0.1", "1.5.0"],
            "<1.0.0 || >=1.5.0 <2.0.0",
            ["1.0.0", "2.0.0"],
            False,
        ),
        (
            [{"introduced": "0"}, {"fixed": "1.5.0"}, {"introduced": "2.0.0"}],
            ["0.0.1", "1.0.0", "1.5.0-rc.1", "2.0.0"],
            "<1.5.0 || >=2.0.0",
            ["1.5.0"],
            True,
        ),
        ([{"introduced": "0"}, {"limit": "1.5.0"}], ["0.0.1", "1.0.0", "1.5.0-rc.1"], "<1.5.0", [], False),
        ([{"introduced": "0"}, {"fixed": "2.0.0"}, {"limit": "1.0.0"}], ["0.0.1"], "<1.0.0", [], False),
        ([{"introduced": "1.5.0"}, {"limit": "1.0.0"}], [], "", [], False),
        ([{"introduced": "1.5.0"}, {"limit": "*"}], ["1.5.0", "2.0.0"], ">=1.5.0", [], True),
        ([{"fixed": "1.0.0"}], [], "", [], False),
        # What cannot be read affects more versions, not fewer.
        ([{"introduced": "weird"}, {"fixed": "1.0.0"}], ["0.0.1"], "<1.0.0", ["1.0.0"], False),
        ([{"introduced": "1.5.0"}, {"fixed": "weird"}], ["1.5.0", "2.0.0"], ">=1.5.0", [], True),
        ([{"introduced": "1.5.0"}, {"last_affected": "weird"}], ["1.5.0", "2.0.0"], ">=1.5.0", [], True),
    ],
)
def test_events_become_ranges(
    events: list[dict[str, str]], affected_: list[str], range_: str, fixed: list[str], open_end: bool
) -> None:
    found = one(*events)
    assert hit(found, "0.0.1", "1.0.0", "1.5.0-rc.1", "1.5.0", "2.0.0") == affected_
    assert (found.affected, found.fixed_versions, found.has_open_end) == (range_, fixed, open_end)


def test_listed_versions_are_affected_beside_those_of_ranges() -> None:
    found = one(*since("0", "1.5.0"), affected={"versions": ["2.0.0", "1.0.0", "3.0.0-rc.1", "not one"]})
    shown = ["1.0.0", "2.0.0", "2.0.0+build", "3.0.0-rc.1"]
    assert hit(found, "1.0.0", "2.0.0", "2.0.0+build", "2.0.1", "3.0.0-rc.1") == shown
    assert found.affected == "<1.5.0 || =2.0.0 || =3.0.0-rc.1"


def test_listed_versions_that_no_standard_allows_are_compared_as_text() -> None:
    found = one(ecosystem="PyPI", affected={"versions": ["2004d", "1.0"]})
    assert hit(found, "2004d", "2004e", "1.0.0", "1.0+cpu", "1.0.1") == ["2004d", "1.0.0", "1.0+cpu"]


@pytest.mark.parametrize(
    ("known", "range_"), [("<= 1.2.3", "<=1.2.3"), ("< 1.2.3", "<1.2.3"), ("~> 1", "*"), ("<= x", "*"), (7, "*")]
)
def test_last_known_affected_version_ends_an_open_range(known: object, range_: str) -> None:
    more = {"database_specific": {"last_known_affected_version_range": known}}
    found = one(*since("0"), affected=more)
    assert found.affected == range_
    assert found.fixed_versions == []
    assert one(*since("0", "9.0.0"), affected=more).affected == "<9.0.0"


def test_packages_are_those_that_repositories_can_have() -> None:
    found = read(
        record(
            "X",
            affected("PyPI", "Foo.Bar", *since("0")),
            affected("Maven:https://repo.example/", "org.acme:core", *since("0")),
            affected("npm", "../up", *since("0")),
            affected("Go", "rust", *since("0")),
            {"versions": ["1"]},
        )
    )
    assert [(each.ecosystem, each.package) for each in found] == [("PyPI", "foo-bar"), ("Maven", "org.acme:core")]


def test_withdrawn_records_affect_nothing() -> None:
    assert read(PY_WITHDRAWN) == []


def test_ranges_of_commits_are_left_out() -> None:
    found = one({"introduced": "0"}, affected={"kind": "GIT", "versions": ["1.0.0"]})
    assert (found.affected, hit(found, "1.0.0", "1.0.1")) == ("=1.0.0", ["1.0.0"])


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"id":1}', b'{"id":""}', b'{"id":"a","affected":{}}', b'{"id":"\xff"}', b'{"x":' * 9000],
)
def test_malformed_record_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid, match="no OSV record"):
        read_record(data, ECOSYSTEMS)


def test_long_record_is_refused() -> None:
    with pytest.raises(Invalid, match="longer than 8388608 bytes"):
        read_record(b" " * 8_388_609, ECOSYSTEMS)


@pytest.mark.parametrize(
    ("fields", "severity", "score"),
    [
        ({"database_specific": {"severity": "MODERATE"}}, "moderate", 0.0),
        ({"database_specific": {"severity": "MEDIUM"}}, "moderate", 0.0),
        ({"severity": [{"type": "CVSS_V3", "score": VECTOR}]}, "critical", 9.8),
        ({"severity": [{"type": "CVSS_V3", "score": VECTOR}], "database_specific": {"severity": "HIGH"}}, "high", 9.8),
        (
            {
                "severity": [
                    {"type": "CVSS_V4", "score": "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N"}
                ]
            },
            "critical",
            9.3,
        ),
        ({"severity": [{"type": "CVSS_V4", "score": "CVSS:4.0/AV:N"}]}, "unknown", 0.0),
        ({"severity": [{"type": "CVSS_V3", "score": VECTOR[:-11] + "C:N/I:N/A:N"}]}, "info", 0.0),
        ({"id": "MAL-2026-1"}, "critical", 0.0),
        ({"database_specific": {"severity": "unknown"}}, "unknown", 0.0),
        ({}, "unknown", 0.0),
    ],
)
def test_severity_is_the_stated_or_the_computed_one(fields: dict[str, Any], severity: str, score: float) -> None:
    (found,) = read({**record("GHSA-1", affected("npm", "x", *since("0"))), **fields})
    assert (found.severity, found.score) == (severity, score)


def test_each_vulnerability_is_shown_once() -> None:
    def named(id: str, shown_as: str, severity: str = "high") -> Advisory:
        return Advisory(id=id, ecosystem="npm", package="x", title="", url="", severity=severity, shown_as=shown_as)

    found = [named("A", "B"), named("B", "B"), named("C", "D", "critical"), named("E", "")]
    assert [each.id for each in distinct(found)] == ["C", "B", "E"]

"""Advisories from OSV records, and audits answered from them."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.audit import advisories, matching
from pkgrepo.formats.npm.audit.advisories import Advisory, affecting, read_record
from pkgrepo.formats.npm.audit.export import EMPTY, AdvisoryIndex, read_export
from pkgrepo.formats.npm.audit.matching import bulk_response, quick_response, read_bulk, read_tree
from pkgrepo.formats.npm.limits import AuditLimits
from pkgrepo.formats.npm.semver import parse_version

VECTOR = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"


def record(*events: dict[str, str], id: str = "GHSA-1", package: str = "x", **fields: Any) -> bytes:
    affected = {
        "package": {"ecosystem": "npm", "name": package},
        "ranges": [{"type": "SEMVER", "events": list(events)}],
        **fields.pop("affected", {}),
    }
    document = {"schema_version": "1.4.0", "id": id, "summary": "Bad thing", "affected": [affected], **fields}
    return json.dumps(document).encode()


def advisory(*events: dict[str, str], **fields: Any) -> Advisory:
    (found,) = read_record(record(*events, **fields))
    return found


def affected(found: Advisory, *versions: str) -> list[str]:
    return [version for version in versions if found.affects(parse_version(version))]


@pytest.mark.parametrize(
    ("events", "hit", "range_", "patched"),
    [
        ([{"introduced": "0"}, {"fixed": "1.5.0"}], ["0.0.1", "1.0.0", "1.5.0-rc.1"], "<1.5.0", ">=1.5.0"),
        ([{"introduced": "1.0.0"}, {"fixed": "1.5.0"}], ["1.0.0", "1.5.0-rc.1"], ">=1.0.0 <1.5.0", ">=1.5.0"),
        ([{"introduced": "0"}, {"last_affected": "1.0.0"}], ["0.0.1", "1.0.0"], "<=1.0.0", "<0.0.0"),
        ([{"introduced": "1.0.0"}], ["1.0.0", "1.5.0-rc.1", "1.5.0", "2.0.0"], ">=1.0.0", "<0.0.0"),
        ([{"introduced": "0"}], ["0.0.1", "1.0.0", "1.5.0-rc.1", "1.5.0", "2.0.0"], "*", "<0.0.0"),
        (
            [{"introduced": "0"}, {"fixed": "1.0.0"}, {"introduced": "1.5.0"}, {"fixed": "2.0.0"}],
            ["0.0.1", "1.5.0"],
            "<1.0.0 || >=1.5.0 <2.0.0",
            ">=2.0.0",
        ),
        (
            [{"fixed": "2.0.0"}, {"introduced": "1.5.0"}, {"fixed": "1.0.0"}, {"introduced": "0"}],
            ["0.0.1", "1.5.0"],
            "<1.0.0 || >=1.5.0 <2.0.0",
            ">=2.0.0",
        ),
        (
            [{"introduced": "0"}, {"fixed": "1.5.0"}, {"introduced": "2.0.0"}],
            ["0.0.1", "1.0.0", "1.5.0-rc.1", "2.0.0"],
            "<1.5.0 || >=2.0.0",
            "<0.0.0",
        ),
        ([{"fixed": "1.0.0"}], [], "", ">=1.0.0"),
        ([{"introduced": "weird"}, {"fixed": "1.0.0"}], [], "", "<0.0.0"),
    ],
)
def test_event_ranges_affect_the_right_versions(
    events: list[dict[str, str]], hit: list[str], range_: str, patched: str
) -> None:
    found = advisory(*events)
    assert affected(found, "0.0.1", "1.0.0", "1.5.0-rc.1", "1.5.0", "2.0.0") == hit
    assert found.vulnerable_versions == range_
    if hit:
        assert found.patched_versions == patched


def test_listed_versions_are_affected() -> None:
    listed = {"versions": ["2.0.0", "1.0.0", "3.0.0-rc.1", "not one"]}
    found = advisory({"introduced": "0"}, {"fixed": "1.5.0"}, affected=listed)
    assert affected(found, "1.0.0", "2.0.0", "2.0.0+build", "2.0.1", "3.0.0-rc.1") == [
        "1.0.0",
        "2.0.0",
        "2.0.0+build",
        "3.0.0-rc.1",
    ]
    assert found.vulnerable_versions == "<1.5.0 || =2.0.0 || =3.0.0-rc.1"


@pytest.mark.parametrize(
    ("known", "range_"), [("<= 1.2.3", "<=1.2.3"), ("< 1.2.3", "<1.2.3"), ("~> 1", "*"), (7, "*"), (None, "*")]
)
def test_last_known_affected_version_ends_an_open_range(known: object, range_: str) -> None:
    known_range = {"database_specific": {"last_known_affected_version_range": known}}
    assert advisory({"introduced": "0"}, affected=known_range).vulnerable_versions == range_
    assert advisory({"introduced": "0"}, {"fixed": "9.0.0"}, affected=known_range).vulnerable_versions == "<9.0.0"


def test_other_ecosystems_and_withdrawn_records_are_ignored() -> None:
    other = {"package": {"ecosystem": "PyPI", "name": "x"}, "ranges": []}
    document = json.loads(record({"introduced": "0"}))
    document["affected"] += [
        other,
        {"versions": ["1"]},
        {**document["affected"][0], "package": {"ecosystem": "npm", "name": "y"}},
    ]
    assert [each.package for each in read_record(json.dumps(document).encode())] == ["x", "y"]
    assert read_record(record({"introduced": "0"}, withdrawn="2026-01-01T00:00:00Z")) == []


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"id":1}', b'{"id":"a","affected":{}}', b'{"id":"\xff"}', b'{"x":' * 9000]
)
def test_malformed_record_is_refused(data: bytes) -> None:
    with pytest.raises(Invalid, match="no OSV record"):
        read_record(data)


def test_commit_ranges_are_ignored_and_long_records_are_refused() -> None:
    commits = {"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}
    assert advisory(affected=commits).ranges == ()
    with pytest.raises(Invalid, match="longer than 8388608 bytes"):
        read_record(b" " * 8_388_609)


@pytest.mark.parametrize(
    ("fields", "severity", "score"),
    [
        ({"database_specific": {"severity": "MODERATE"}}, "moderate", 0.0),
        ({"database_specific": {"severity": "MEDIUM"}}, "moderate", 0.0),
        ({"severity": [{"type": "CVSS_V3", "score": VECTOR}]}, "critical", 9.8),
        (
            {
                "severity": [{"type": "CVSS_V4", "score": "CVSS:4.0/AV:N"}, {"type": "CVSS_V3", "score": VECTOR}],
                "database_specific": {"severity": "HIGH"},
            },
            "high",
            9.8,
        ),
        ({"severity": [{"type": "CVSS_V4", "score": "CVSS:4.0/AV:N"}]}, "moderate", 0.0),
        ({"id": "MAL-2026-1"}, "critical", 0.0),
        ({"database_specific": {"severity": 3}}, "moderate", 0.0),
    ],
)
def test_severity_is_the_stated_or_the_computed_one(fields: dict[str, Any], severity: str, score: float) -> None:
    found = advisory({"introduced": "0"}, **fields)
    assert (found.severity, found.score) == (severity, score)


@pytest.mark.parametrize(
    ("vector", "score"),
    [
        (VECTOR, 9.8),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H", 10.0),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N", 6.1),
        ("CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:N/I:N/A:H", 5.9),
        ("CVSS:3.0/AV:L/AC:L/PR:L/UI:N/S:U/C:H/I:H/A:H", 7.8),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:L", 5.3),
        ("CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:L/I:L/A:N", 6.4),
        ("CVSS:3.1/AV:P/AC:H/PR:H/UI:R/S:U/C:N/I:L/A:N", 1.6),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N", 0.0),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H/E:P", 9.8),
        ("CVSS:3.1/AV:N", None),
        ("CVSS:3.1/AV:X/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", None),
        ("CVSS:2.0/AV:N/AC:L/Au:N/C:P/I:P/A:P", None),
        ("", None),
    ],
)
def test_base_scores_are_those_of_the_standard(vector: str, score: float | None) -> None:
    assert advisories.base_score(vector) == score


@pytest.mark.parametrize(
    ("score", "word"), [(0, "info"), (0.1, "low"), (3.9, "low"), (4, "moderate"), (7, "high"), (9, "critical")]
)
def test_scores_map_to_severities(score: float, word: str) -> None:
    assert advisories.severity_of(score) == word


def book(*records: bytes) -> AdvisoryIndex:
    found: dict[str, list[Advisory]] = {}
    for each in records:
        for one in read_record(each):
            found.setdefault(one.package, []).append(one)
    return AdvisoryIndex(found)


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
    assert entry.pop("id") == BOOK.of("x")[0].number
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
    assert bulk_response(asked, EMPTY) == {}


def test_numbers_of_advisories_are_stable_and_exact_in_javascript() -> None:
    numbers = {advisory({"introduced": "0"}, id=f"GHSA-{n}").number for n in range(100)}
    assert len(numbers) == 100
    assert max(numbers) < 2**53
    assert advisory({"introduced": "0"}, id="GHSA-7").number in numbers


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
    number = BOOK.of("x")[0].number
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


def test_export_is_read_from_a_folder_and_from_a_zip(tmp_path: Path) -> None:
    records = {"a.json": record({"introduced": "0"}), "sub/b.json": record({"introduced": "0"}, id="M", package="y")}
    records |= {"odd.json": b"{", "README.md": b"no"}
    folder = tmp_path / "folder"
    for name, data in records.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name, data in records.items():
            archive.writestr(name, data)
    for path in (folder, tmp_path / "all.zip"):
        found = read_export(path)
        assert set(found.by_package) == {"x", "y"}
        assert found.unreadable == 1
        assert affecting(found.of("x"), ["1.0.0"])
        assert found.of("z") == ()


def test_malformed_export_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"no zip")
    with pytest.raises(Invalid, match="neither a folder nor a zip"):
        read_export(tmp_path / "x.zip")
    with pytest.raises(FileNotFoundError):
        read_export(tmp_path / "missing.zip")


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

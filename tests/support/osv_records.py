"""Records in the form of OSV, with the facts of published advisories, and exports of them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Event = Mapping[str, str]


def record(id: str, *affected: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A record; ``fields`` replace those that most have."""
    return {
        "schema_version": "1.6.0",
        "id": id,
        "modified": "2026-01-02T00:00:00Z",
        "published": "2026-01-01T00:00:00Z",
        "affected": list(affected),
        **fields,
    }


def affected(ecosystem: str, name: str, *events: Event, kind: str = "ECOSYSTEM", **fields: Any) -> dict[str, Any]:
    """What a record says of a package."""
    ranges = [{"type": kind, "events": list(events)}] if events else []
    return {"package": {"ecosystem": ecosystem, "name": name}, "ranges": ranges, **fields}


def since(introduced: str, fixed: str = "", last: str = "") -> list[Event]:
    """The events of one range."""
    end = [{"fixed": fixed}] if fixed else [{"last_affected": last}] if last else []
    return [{"introduced": introduced}, *end]


def cvss(vector: str) -> list[dict[str, str]]:
    """The severity by a vector."""
    return [{"type": "CVSS_V4" if vector.startswith("CVSS:4") else "CVSS_V3", "score": vector}]


MINIMIST = record(
    "GHSA-vh95-rmgr-6w4m",
    affected("npm", "minimist", *since("0", "0.2.1"), kind="SEMVER"),
    affected("npm", "minimist", *since("1.0.0", "1.2.3"), kind="SEMVER"),
    summary="Prototype Pollution in minimist",
    aliases=["CVE-2020-7598"],
    severity=cvss("CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:L/I:L/A:L"),
    database_specific={"severity": "MODERATE", "cwe_ids": ["CWE-1321"]},
)
# The same vulnerability in two databases; the second one gives no severity.
REQUESTS = record(
    "GHSA-j8r2-6x86-q33q",
    affected("PyPI", "requests", *since("2.3.0", "2.31.0")),
    summary="Unintended leak of Proxy-Authorization header in requests",
    aliases=["CVE-2023-32681", "PYSEC-2023-74"],
    severity=cvss("CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:C/C:H/I:N/A:N"),
    database_specific={"severity": "MODERATE", "cwe_ids": ["CWE-200"]},
)
REQUESTS_PYSEC = record(
    "PYSEC-2023-74",
    affected("PyPI", "requests", *since("2.3.0", "2.31.0"), versions=["2.3.0", "2.28.1", "2.30.0"]),
    details="Requests is a HTTP library. Since Requests 2.3.0, it has been leaking Proxy-Authorization headers.",
    aliases=["CVE-2023-32681", "GHSA-j8r2-6x86-q33q"],
)
PY = record(
    "PYSEC-2022-42969",
    affected("PyPI", "py", *since("0", last="1.11.0")),
    details="The py library through 1.11.0 for Python allows a ReDoS attack via a Subversion repository.",
    aliases=["CVE-2022-42969"],
)
PY_WITHDRAWN = record(
    "GHSA-w596-4wvx-j9j6",
    affected("PyPI", "py", *since("0", last="1.11.0")),
    summary="ReDoS in py library when used with subversion",
    aliases=["CVE-2022-42969", "PYSEC-2022-42969"],
    withdrawn="2024-09-13T00:00:00Z",
    database_specific={"severity": "HIGH"},
)
LOG4J = record(
    "GHSA-jfh8-c2jp-5v3q",
    affected("Maven", "org.apache.logging.log4j:log4j-core", *since("2.13.0", "2.15.0")),
    affected("Maven", "org.apache.logging.log4j:log4j-core", *since("2.4", "2.12.2")),
    affected("Maven", "org.apache.logging.log4j:log4j-core", *since("2.0-beta9", "2.3.1")),
    summary="Remote code injection in Log4j",
    aliases=["CVE-2021-44228"],
    severity=cvss("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H"),
    database_specific={"severity": "CRITICAL", "cwe_ids": ["CWE-20", "CWE-400", "CWE-502", "CWE-917"]},
)
RACK = record(
    "GHSA-wq4h-7r42-5hrr",
    affected("RubyGems", "rack", *since("0", "2.0.9.1")),
    affected("RubyGems", "rack", *since("2.1", "2.1.4.1")),
    affected("RubyGems", "rack", *since("2.2", "2.2.3.1")),
    summary="Possible shell escape sequence injection vulnerability in Rack",
    aliases=["CVE-2022-30123"],
    severity=cvss("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H"),
)
NOKOGIRI = record(
    "GHSA-xh29-r2w5-wx8m",
    affected("RubyGems", "nokogiri", *since("0", "1.13.6")),
    summary="Improper Handling of Unexpected Data Type in Nokogiri",
    aliases=["CVE-2022-29181"],
    database_specific={"severity": "HIGH"},
)
SAMPLES = (MINIMIST, REQUESTS, REQUESTS_PYSEC, PY, PY_WITHDRAWN, LOG4J, RACK, NOKOGIRI)


def write_folder(folder: Path, records: Sequence[Mapping[str, Any]] = SAMPLES) -> Path:
    """Write an export as a folder, with a folder for each ecosystem of the first package. Returns the folder."""
    for each in records:
        ecosystem = each["affected"][0]["package"]["ecosystem"]
        (folder / ecosystem).mkdir(parents=True, exist_ok=True)
        (folder / ecosystem / f"{each['id']}.json").write_text(json.dumps(each))
    return folder


def write_zip(path: Path, records: Sequence[Mapping[str, Any]] = SAMPLES) -> Path:
    """Write an export as a zip. Returns its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in records:
            archive.writestr(f"{each['id']}.json", json.dumps(each))
    return path

"""What Maven sends to deploy a release: files, then metadata that were read, changed and written back."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree as ET

from tests.support.http_client import HttpClient

TIME = "20240102030405"


def versions_in(metadata: bytes) -> list[str]:
    """The versions that metadata list, in their order."""
    return [each.text or "" for each in ET.fromstring(metadata).iterfind("versioning/versions/version")]


def artifact_metadata(artifact: str, versions: Sequence[str], group: str = "com.example") -> bytes:
    """Metadata as Maven writes them when it deploys the last of the versions."""
    listed = "".join(f"      <version>{each}</version>\n" for each in versions)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<metadata>\n'
        f"  <groupId>{group}</groupId>\n  <artifactId>{artifact}</artifactId>\n  <versioning>\n"
        f"    <release>{versions[-1]}</release>\n    <versions>\n{listed}    </versions>\n"
        f"    <lastUpdated>{TIME}</lastUpdated>\n  </versioning>\n</metadata>\n"
    ).encode()


def deploy(client: HttpClient, artifact: str, version: str) -> None:
    """Deploy a release as Maven 3.8 does; any response that fails its build raises ``AssertionError``."""
    directory = f"/com/example/{artifact}"
    for extension, body in (("jar", f"jar of {version}".encode()), ("pom", b"<project/>")):
        path = f"{directory}/{version}/{artifact}-{version}.{extension}"
        _put(client, path, body)
    path = f"{directory}/maven-metadata.xml"
    found = client.get(path)
    assert found.status in (200, 404), (path, found.status)
    seen = versions_in(found.body) if found.status == 200 else []
    _put(client, path, artifact_metadata(artifact, [*(each for each in seen if each != version), version]))


def deploy_snapshot(client: HttpClient, artifact: str, base: str, timestamp: str) -> str:
    """Deploy a snapshot with this timestamp, as ``deploy``; returns the version in the names of its files."""
    directory = f"/com/example/{artifact}/{base}-SNAPSHOT"
    found = client.get(f"{directory}/maven-metadata.xml")
    assert found.status in (200, 404), found.status
    numbers = re.findall(b"<buildNumber>([0-9]+)</buildNumber>", found.body)
    number = 1 + (int(numbers[0]) if numbers else 0)
    value = f"{base}-{timestamp}-{number}"
    updated = timestamp.replace(".", "")
    listed = ""
    for extension, body in (("jar", value.encode()), ("pom", b"<project/>")):
        _put(client, f"{directory}/{artifact}-{value}.{extension}", body)
        listed += (
            f"<snapshotVersion><extension>{extension}</extension><value>{value}</value>"
            f"<updated>{updated}</updated></snapshotVersion>"
        )
    metadata = (
        f'<metadata modelVersion="1.1.0"><groupId>com.example</groupId><artifactId>{artifact}</artifactId>'
        f"<versioning><lastUpdated>{updated}</lastUpdated><snapshot><timestamp>{timestamp}</timestamp>"
        f"<buildNumber>{number}</buildNumber></snapshot><snapshotVersions>{listed}</snapshotVersions></versioning>"
        f"<version>{base}-SNAPSHOT</version></metadata>"
    )
    _put(client, f"{directory}/maven-metadata.xml", metadata.encode())
    return value


def at_once(tasks: Iterable[Callable[[], object]]) -> list[object]:
    """Run tasks in threads that begin at the same time, and return their results."""
    tasks = list(tasks)
    begin = threading.Barrier(len(tasks))

    def run(task: Callable[[], object]) -> object:
        begin.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(run, tasks))


def _put(client: HttpClient, path: str, body: bytes) -> None:
    for suffix, content in (
        ("", body),
        (".sha1", hashlib.sha1(body).hexdigest().encode()),
        (".md5", hashlib.md5(body).hexdigest().encode()),
    ):
        reply = client.put(path + suffix, content)
        assert reply.status in (200, 201), (path + suffix, reply.status, reply.reason)

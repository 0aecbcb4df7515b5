"""Metadata of snapshots: made of the stored files, whatever the times of the clients."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.server

BUILD = "/com/documents/snap/1.1-SNAPSHOT"


def test_metadata_of_a_snapshot_lists_the_newest_file_of_each_kind(mvn):
    for name in (
        "snap-1.1-20240102.030405-1.jar",
        "snap-1.1-20240102.030405-1.pom",
        "snap-1.1-20240102.030405-1-sources.jar",
        "snap-1.1-20240103.030405-2.jar",
        "snap-1.1-20240103.030405-2.pom",
        "snap-1.1-20240104.030405-3.jar",
        "snap-1.1-SNAPSHOT.jar",
        "snap-1.1-SNAPSHOT-docs.tar.gz",
    ):
        body = b"<project/>" if name.endswith(".pom") else name.encode()
        assert mvn.put(f"{BUILD}/{name}", body).status == 201
    text = mvn.get(f"{BUILD}/maven-metadata.xml").text
    # Build 3 has no POM yet.
    assert "<timestamp>20240103.030405</timestamp>\n      <buildNumber>2</buildNumber>" in text
    entries = re.findall("<snapshotVersion>(.*?)</snapshotVersion>", text, re.DOTALL)
    assert [tuple(re.findall("<[a-z]+>(.*?)</", each)) for each in entries][:3] == [
        ("jar", "1.1-20240104.030405-3", "20240104030405"),
        ("pom", "1.1-20240103.030405-2", "20240103030405"),
        ("docs", "tar.gz", "1.1-SNAPSHOT", entries[2].split("<updated>")[1][:14]),
    ]
    assert tuple(re.findall("<[a-z]+>(.*?)</", entries[3]))[2] == "1.1-20240102.030405-1"
    assert len(entries) == 4
    assert "<version>1.1-SNAPSHOT</version>\n</metadata>" in text
    assert mvn.ask("DELETE", f"{BUILD}/2").status == 204
    assert "<buildNumber>1</buildNumber>" in mvn.get(f"{BUILD}/maven-metadata.xml").text


def test_clients_times_that_differ_from_the_names_of_files_are_mended(mvn):
    directory = "/com/documents/mended/1.0-SNAPSHOT"
    for extension, body in (("jar", b"jar"), ("pom", b"<project/>")):
        assert mvn.put(f"{directory}/mended-1.0-20240102.030405-1.{extension}", body).status == 201
    sent = """<metadata modelVersion="1.1.0"><groupId>com.documents</groupId><artifactId>mended</artifactId>
<versioning><lastUpdated>{time}</lastUpdated>
<snapshot><timestamp>20240102.030405</timestamp><buildNumber>1</buildNumber></snapshot><snapshotVersions>
<snapshotVersion><extension>jar</extension><value>1.0-20240102.030405-1</value><updated>{time}</updated></snapshotVersion>
<snapshotVersion><extension>pom</extension><value>1.0-20240102.030405-1</value><updated>{time}</updated></snapshotVersion>
</snapshotVersions></versioning><version>1.0-SNAPSHOT</version></metadata>"""
    path = f"{directory}/maven-metadata.xml"
    assert mvn.put(path, sent.format(time="20240102030406").encode()).status == 200
    assert "<updated>20240102030405</updated>" in mvn.get(path).text
    exact = sent.format(time="20240102030405").encode()
    assert mvn.put(path, exact).status == 200
    assert mvn.get(path).body == exact

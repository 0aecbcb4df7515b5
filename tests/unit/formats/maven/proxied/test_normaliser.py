"""Metadata of upstreams become the fragments of hosted artifacts."""

from __future__ import annotations

import msgspec
import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.metadata.reading import SnapshotFile
from pkgrepo.formats.maven.proxied.normaliser import normalise
from pkgrepo.proxy.parts.values import Context, Entry

SNAPSHOT = "com.example:app:1.0-SNAPSHOT"


def entries(document: str, name: str = "com.example:app") -> list[Entry]:
    found = normalise(document.encode(), Context(name, "https://up.example/")).entries
    return sorted(found, key=lambda each: (each.sort, each.key))


def versioning(inner: str) -> str:
    return f"<metadata><groupId>any</groupId><versioning>{inner}</versioning></metadata>"


def listed(*versions: str) -> str:
    return versioning(f"<versions>{''.join(f'<version>{each}</version>' for each in versions)}</versions>")


def files(inner: str) -> list[SnapshotFile]:
    found = entries(versioning(inner), SNAPSHOT)
    return [msgspec.json.decode(each.fragments["build"], type=SnapshotFile) for each in found]


def test_versions_are_in_their_order() -> None:
    found = entries(listed("1.10", "1.9", "1.10-rc1"))
    assert [each.version for each in found] == ["1.9", "1.10-rc1", "1.10"]
    assert found[0].fragments == {"version": b"<version>1.9</version>"}


def test_versions_that_are_no_directories_are_left_out() -> None:
    odd = ("..", "a/b", "a\\b", "", " ", "x" * 256, "a:b")
    assert [each.version for each in entries(listed("1.0", *odd))] == ["1.0"]


def test_time_and_plugins_are_kept_above_the_versions() -> None:
    plugin = "<plugin><name>P</name><prefix>p</prefix><artifactId>p-plugin</artifactId></plugin>"
    updated = "<versioning><lastUpdated>20240102030405</lastUpdated></versioning>"
    document = f"<metadata><plugins>{plugin}</plugins>{updated}</metadata>"
    top = normalise(document.encode(), Context("g:a", "")).top
    assert top["last_updated_ms"] == 1_704_164_645_000
    assert [list(each) for each in top["plugins"]] == [["p", "p-plugin", "P"]]


@pytest.mark.parametrize("written", ["", "yesterday", "20241399000000", "99999999999999999999"])
def test_odd_times_are_no_time(written: str) -> None:
    document = versioning(f"<lastUpdated>{written}</lastUpdated>")
    assert normalise(document.encode(), Context("g:a", "")).top["last_updated_ms"] == 0


LONG = 9_999_999_999  # a build number that takes more than 32 bits


def test_files_of_builds_have_their_place_in_the_order() -> None:
    kinds = "<extension>jar</extension><value>1.0-20240102.030405-{}</value><updated>1</updated>"
    inner = "".join(f"<snapshotVersion>{kinds.format(number)}</snapshotVersion>" for number in (LONG, 10, 9))
    found = entries(versioning(f"<snapshotVersions>{inner}</snapshotVersions>"), SNAPSHOT)
    assert [each.key for each in found] == [
        "app-1.0-20240102.030405-9.jar",
        "app-1.0-20240102.030405-10.jar",
        f"app-1.0-20240102.030405-{LONG}.jar",
    ]
    assert {each.version for each in found} == {"1.0-SNAPSHOT"}


def test_files_of_other_versions_are_left_out() -> None:
    values = ("2.0-20240102.030405-1", "1.0-2024.1-1", "1.0-20240102.030405-1/../x", "1.0-20240102.030405-x")
    inner = "".join(
        f"<snapshotVersion><extension>jar</extension><value>{each}</value></snapshotVersion>" for each in values
    )
    assert files(f"<snapshotVersions>{inner}</snapshotVersions>") == []


def test_metadata_of_maven_2_name_the_newest_build() -> None:
    found = files("<snapshot><timestamp>20240102.030405</timestamp><buildNumber>6</buildNumber></snapshot>")
    assert {each.extension for each in found} == {"jar", "pom"}
    assert {(each.value, each.build) for each in found} == {("1.0-20240102.030405-6", 6)}


@pytest.mark.parametrize("document", [b"", b"<html/>", b"<metadata>", b'<!DOCTYPE m [<!ENTITY a "a">]><metadata/>'])
def test_what_is_no_metadata_cannot_be_used(document: bytes) -> None:
    with pytest.raises(Invalid):
        normalise(document, Context("g:a", ""))

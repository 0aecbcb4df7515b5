"""What request paths mean."""

from __future__ import annotations

from urllib.parse import quote, quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.names import Coordinates
from pkgrepo.formats.maven.paths import (
    ALGORITHMS,
    ArtifactFile,
    Checksum,
    Directory,
    Metadata,
    Path,
    PlainFile,
    parse_path,
    parse_text,
)

APP = Coordinates("com.example", "app", "1.0")
SNAPSHOT = Coordinates("com.example", "app", "1.1-SNAPSHOT")


def parse(path: str) -> Path:
    return parse_path(quote(path).encode(), directory_ok=True)


@pytest.mark.parametrize(
    ("name", "classifier", "extension"),
    [
        ("app-1.0.jar", "", "jar"),
        ("app-1.0.pom", "", "pom"),
        ("app-1.0.module", "", "module"),
        ("app-1.0-sources.jar", "sources", "jar"),
        ("app-1.0-bin.tar.gz", "bin", "tar.gz"),
        ("app-1.0.tar.gz", "", "tar.gz"),
        ("app-1.0-linux-x86_64.so", "linux-x86_64", "so"),
        ("app-1.0--.jar", "-", "jar"),
        ("app-1.0-1.0.jar", "1", "0.jar"),
    ],
)
def test_files_of_a_release(name: str, classifier: str, extension: str) -> None:
    path = f"com/example/app/1.0/{name}"
    assert parse(path) == ArtifactFile(path, APP, "1.0", classifier, extension)


@pytest.mark.parametrize(
    ("suffix", "role"), [(".asc", ".asc"), (".sigstore.json", ".sigstore.json"), (".sigstore.json.asc", ".asc")]
)
def test_signatures_have_a_role(suffix: str, role: str) -> None:
    found = parse(f"com/example/app/1.0/app-1.0.jar{suffix}")
    assert isinstance(found, ArtifactFile)
    assert found.role == role
    assert found.signed_path == found.path.removesuffix(role)


def test_a_file_whose_extension_is_that_of_a_signature_is_none() -> None:
    found = parse("com/example/app/1.0/app-1.0.asc")
    assert isinstance(found, ArtifactFile)
    assert found.role is None
    assert found.signed_path is None


def test_dashes_and_dots_in_all_names() -> None:
    path = "org/eclipse/org.eclipse.core-x_2.13/1.0-rc-1/org.eclipse.core-x_2.13-1.0-rc-1-test-sources.jar"
    found = parse(path)
    assert isinstance(found, ArtifactFile)
    assert found.coordinates == Coordinates("org.eclipse", "org.eclipse.core-x_2.13", "1.0-rc-1")
    assert (found.classifier, found.extension) == ("test-sources", "jar")


@pytest.mark.parametrize(
    ("name", "file_version", "classifier", "extension", "timestamp", "build"),
    [
        ("app-1.1-20240102.030405-6.jar", "1.1-20240102.030405-6", "", "jar", "20240102.030405", 6),
        ("app-1.1-20240102.030405-16-x-y.tar.gz", "1.1-20240102.030405-16", "x-y", "tar.gz", "20240102.030405", 16),
        (
            "app-1.1-20240102.030405-6000000000.jar",
            "1.1-20240102.030405-6000000000",
            "",
            "jar",
            "20240102.030405",
            6 * 10**9,
        ),
        ("app-1.1-SNAPSHOT.jar", "1.1-SNAPSHOT", "", "jar", None, None),
        ("app-1.1-SNAPSHOT-20240102.jar", "1.1-SNAPSHOT", "20240102", "jar", None, None),
    ],
)
def test_files_of_a_snapshot(
    name: str, file_version: str, classifier: str, extension: str, timestamp: str | None, build: int | None
) -> None:
    path = f"com/example/app/1.1-SNAPSHOT/{name}"
    found = parse(path)
    assert found == ArtifactFile(path, SNAPSHOT, file_version, classifier, extension, timestamp, build)
    assert isinstance(found, ArtifactFile)
    assert found.literal_snapshot is (timestamp is None)


def test_the_bare_word_is_a_snapshot_too() -> None:
    found = parse("g/app/SNAPSHOT/app-20240102.030405-1.jar")
    assert isinstance(found, ArtifactFile)
    assert (found.file_version, found.build) == ("20240102.030405-1", 1)


@pytest.mark.parametrize(
    "path",
    [
        "test.txt",
        "com/example/app-1.0.jar",
        "com/example/app/1.0/other-1.0.jar",
        "com/example/app/1.0/app-1.0",
        "com/example/app/1.0/app-1.0.",
        "com/example/app/1.0/app-1.0-.jar",
        "com/example/app/1.0/app-1.0-sources",
        "com/example/app/1.0/app-1.0.tar..gz",
        "com/example/app/1.0/app-1.01.jar",
        "com/example/app/1.1-SNAPSHOT/app-1.1-2024.030405-6.jar",
        "com/example/app/1.1-SNAPSHOT/app-1.1-20240102.030405-6jar",
        "com/example/app/1.1-SNAPSHOT/app-1.1-20240102.030405-.jar",
        "com/example/app/1.0/APP-1.0.jar",
        "com.example/app/1.0/app-1.0.jar",
        "com/example/a:b/1.0/a:b-1.0.jar",
        "com/example/app/ 1.0/app- 1.0.jar",
        "app/1.0/app-1.0.jar",
        ".sha1",
        "a/.md5",
        "archetype-catalog.xml",
        "com/example/app/maven-metadata.xml.asc",
    ],
)
def test_other_paths_are_plain_files(path: str) -> None:
    assert parse(path) == PlainFile(path)


@pytest.mark.parametrize("name", ["maven-metadata.xml", "repo-metadata.xml"])
@pytest.mark.parametrize(
    ("directory", "coordinates", "key", "version"),
    [
        ("com/example/app", Coordinates("com", "example", "app"), "com.example:app", None),
        ("com/example", None, "com:example", None),
        ("com/example/app/1.0", APP, "com.example.app:1.0", None),
        ("com/example/app/1.1-SNAPSHOT", SNAPSHOT, "com.example:app", "1.1-SNAPSHOT"),
        ("com", None, None, None),
        ("", None, None, None),
        ("com.example/app", None, None, None),
    ],
)
def test_metadata_by_both_names(
    name: str, directory: str, coordinates: Coordinates | None, key: str | None, version: str | None
) -> None:
    prefix = f"{directory}/" if directory else ""
    expected = Metadata(f"{prefix}maven-metadata.xml", directory, coordinates, key, version)
    assert parse(f"{prefix}{name}") == expected
    assert parse(f"{prefix}{name}.sha256") == Checksum(expected, "sha256")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("path", ["com/example/app/1.0/app-1.0.jar", "com/example/app/1.0/app-1.0.jar.asc", "a.txt"])
def test_checksums_of_everything(path: str, algorithm: str) -> None:
    found = parse(f"{path}.{algorithm}")
    assert found == Checksum(parse(path), algorithm)  # type: ignore[arg-type]
    assert found.path == f"{path}.{algorithm}"


def test_a_checksum_of_a_checksum_is_refused() -> None:
    with pytest.raises(Invalid):
        parse("a.jar.sha1.md5")


@pytest.mark.parametrize("name", ["maven-metadata.xml", "repo-metadata.xml"])
def test_nothing_is_below_metadata(name: str) -> None:
    for path in (f"{name}/x", f"com/example/{name}/x.txt", f"g/a/{name}/a-{name}.jar", f"g/{name}/{name}"):
        with pytest.raises(Invalid):
            parse(path)


@pytest.mark.parametrize(
    ("raw", "path"), [(b"", ""), (b"com/", "com"), (b"com/example/", "com/example"), (b"a%20b/1.0+x/", "a b/1.0+x")]
)
def test_directories(raw: bytes, path: str) -> None:
    assert parse_path(raw, directory_ok=True) == Directory(path)
    with pytest.raises(Invalid):
        parse_path(raw, directory_ok=False)


@pytest.mark.parametrize(
    "raw",
    [
        b"/",
        b"a//b",
        b"/a",
        b"a/../b",
        b"a/./b",
        b"../../etc/passwd",
        b"a/%2e%2e/b",
        b"a/%2E./b",
        b"a%2Fb/c",
        b"a%5cb",
        b"a\\b",
        b"a%00b",
        b"a%0Ab",
        b"a%7f",
        b"a%C2%85b",
        b"a%ff",
        b"a%ED%A0%80",
        b"a%EF%BF%BF",
        b"x/" + b"a" * 256,
        b"x/" + b"a" * 256 + b"/",
        b"x/" + "é".encode() * 128,
        b"a/" * 512 + b"b",
    ],
)
@pytest.mark.parametrize("suffix", [b"", b"/x.jar", b"/x.sha1"])
def test_paths_that_are_refused(raw: bytes, suffix: bytes) -> None:
    with pytest.raises(Invalid):
        parse_path(raw + suffix, directory_ok=True)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"g/a/1.0+b/a-1.0+b.jar", "g/a/1.0+b/a-1.0+b.jar"),
        (b"g/a/1.0%2Bb/a-1.0%2bb.jar", "g/a/1.0+b/a-1.0+b.jar"),
        (b"g/%2541", "g/%41"),
        (b"g/a%20b~@$_%C3%A9", "g/a b~@$_é"),
        ("g/é".encode(), "g/é"),
        (b"g/a%3Fb%23", "g/a?b#"),
        (b"a" * 255, "a" * 255),
        (b"a/" * 511 + b"bc", "a/" * 511 + "bc"),
    ],
)
def test_segments_are_decoded_once(raw: bytes, path: str) -> None:
    found = parse_path(raw, directory_ok=False)
    assert found.path == path


def test_the_suffix_of_a_checksum_does_not_count_towards_the_limits() -> None:
    assert parse("a" * 255 + ".sha512") == Checksum(PlainFile("a" * 255), "sha512")
    path = "a/" * 511 + "bc"
    assert parse(path + ".sha1") == Checksum(PlainFile(path), "sha1")


def test_decoded_paths_are_parsed_alike() -> None:
    assert parse_text("com/example/app/1.0/app-1.0.jar") == parse("com/example/app/1.0/app-1.0.jar")
    for path in ("", "a/", "/a", "a/../b", "a\\b", "a\0b", "a/\udc80"):
        with pytest.raises(Invalid):
            parse_text(path)


NAMES = st.from_regex(r"[A-Za-z0-9_](?:[A-Za-z0-9_.+-]{0,10}[A-Za-z0-9_])?", fullmatch=True)
GROUPS = st.lists(st.from_regex(r"[a-z0-9_-]{1,8}", fullmatch=True), min_size=1, max_size=4)
CLASSIFIERS = st.from_regex(r"|[A-Za-z0-9_-]{1,8}", fullmatch=True)
EXTENSIONS = st.sampled_from(["jar", "pom", "tar.gz", "module", "zip"])


@given(GROUPS, NAMES, NAMES, CLASSIFIERS, EXTENSIONS)
def test_every_artifact_is_read_back(
    group: list[str], artifact: str, version: str, classifier: str, extension: str
) -> None:
    name = f"{artifact}-{version}{'-' if classifier else ''}{classifier}.{extension}"
    coordinates = Coordinates(".".join(group), artifact, version)
    path = f"{coordinates.directory}/{name}"
    assert parse(path) == ArtifactFile(path, coordinates, version, classifier, extension)


@given(st.binary(max_size=60))
def test_a_path_is_parsed_or_refused(raw: bytes) -> None:
    for encoded in (raw, quote_from_bytes(raw).encode()):
        try:
            found = parse_path(encoded, directory_ok=True)
        except Invalid:
            continue
        assert all(each not in ("", ".", "..") for each in found.path.split("/")) or found == Directory("")
        assert "\\" not in found.path
        assert found.path.isascii() or found.path.encode()


@given(st.text(st.sampled_from("ab.-/:%2eF\\ +é"), max_size=30))
def test_a_parsed_path_is_read_again_as_the_same(text: str) -> None:
    try:
        found = parse(text)
    except Invalid:
        return
    if not isinstance(found, Directory):
        assert parse(found.path) == found
        assert parse_text(found.path) == found

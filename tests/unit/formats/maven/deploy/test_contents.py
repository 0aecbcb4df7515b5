"""Bundles are refused for what is wrong with their paths, POMs, checksums and signatures, each with its path."""

import hashlib
import io
import tarfile

import pytest

from pkgrepo.archives.source import Source
from pkgrepo.errors import MOST_ERRORS, Invalid
from pkgrepo.formats.maven.configuration import DeployRequirements
from pkgrepo.formats.maven.deploy.contents import Contents, check_contents, check_digests, component_list, survey
from pkgrepo.formats.maven.deploy.problems import Problems, first_sentence
from tests.support.maven_bundles import (
    SIGNATURE,
    artifact,
    make_pom,
    make_tar,
    make_tar_gz,
    make_zip,
    with_checksums,
)

ONE = artifact("com.example", "one", "1.0")
TWO = artifact("com.example.deep", "two", "2.0-SNAPSHOT", file_version="2.0-20240102.030405-6")
JAR, POM = ONE
LIMIT = 10**8

MAKERS = [make_zip, make_tar, make_tar_gz]


NONE = DeployRequirements()


def check(data, requirements=NONE, limit=LIMIT):
    contents, problems = Contents(), Problems()
    list(survey(Source(data, "the bundle"), limit, contents, problems))
    return check_contents(contents, requirements, problems), contents, problems


def problems_of(members, **rest):
    return check(make_zip(members), **rest)[2].texts()


@pytest.mark.parametrize("make", MAKERS)
def test_components_are_found_in_every_kind_of_archive(make):
    components, contents, problems = check(make(with_checksums({**TWO, **ONE})))
    assert not problems
    assert component_list([each.coordinates for each in components], 10) == [
        {"group_id": "com.example.deep", "artifact_id": "two", "version": "2.0-SNAPSHOT"},
        {"group_id": "com.example", "artifact_id": "one", "version": "1.0"},
    ]
    assert [file.path for each in components for file in each.files] == [*sorted(TWO), *sorted(ONE)]
    assert contents.poms[POM].artifact == "one"
    assert contents.checksums[JAR]["sha1"] == hashlib.sha1(ONE[JAR]).hexdigest()
    assert contents.size == sum(map(len, (*ONE.values(), *TWO.values())))


def test_a_tar_archive_of_a_folder_has_dots_and_folders():
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name in (".", "./com", "./com/example/"):
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            archive.addfile(info)
        for name, content in ONE.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    components, _, problems = check(target.getvalue())
    assert not problems
    assert len(components) == 1


@pytest.mark.parametrize(
    "name",
    [
        "com/example/one/maven-metadata.xml",
        "com/example/one/maven-metadata.xml.sha1",
        "com/example/one/repo-metadata.xml",
        "com/example/maven-metadata.xml",
        "maven-metadata.xml",
    ],
)
def test_metadata_is_ignored(name):
    components, contents, problems = check(make_zip({**ONE, name: b"<metadata>"}))
    assert not problems
    assert len(components) == 1
    assert sorted(contents.files) == sorted(ONE)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("README.txt", "no path of an artifact"),
        ("com/example/one/1.0/other-1.0.jar", "no path of an artifact"),
        ("com/example/one/1.0/.DS_Store", "no path of an artifact"),
        ("com/example/one/1.0/README.txt.sha1", "no path of an artifact"),
        ("com/example/one/1.0/one-1.0.jar.sha1.md5", "checksums have no checksums"),
        ("com/example/one/1.0/one-1.0." + "x" * 250, "longer than 255 bytes"),
        ("d/" * 600 + "a/1/a-1.jar", "longer than 1024 bytes"),
    ],
)
def test_other_paths_are_refused(name, expected):
    found = problems_of({**ONE, name: b"x"})
    assert list(found) == [name]
    assert expected in found[name][0]


@pytest.mark.parametrize(
    ("change", "path", "expected"),
    [
        ({POM: None}, "com/example/one/1.0", "neither a POM nor a Gradle module file"),
        ({POM: make_pom("com.example", "two", "1.0")}, POM, "artifactId is 'two'"),
        ({POM: make_pom("com.other", "one", "1.0")}, POM, "groupId is 'com.other'"),
        ({POM: make_pom("com.example", "one", "1.1")}, POM, "version is '1.1'"),
        ({POM: b"<project><artifactId>"}, POM, "not well-formed"),
        ({POM: b"<html/>"}, POM, "root element"),
        ({POM: b"<!DOCTYPE project>" + ONE[POM].partition(b"\n")[2]}, POM, "DOCTYPE"),
        ({POM: b""}, POM, "not well-formed"),
        ({f"{JAR}.sha1": b"xyz"}, f"{JAR}.sha1", "no sha1 checksum"),
        ({f"{JAR}.sha1": b"0" * 32}, f"{JAR}.sha1", "no sha1 checksum"),
        ({f"{JAR}.sha1": b"0" * 10_000}, f"{JAR}.sha1", "more than 4096 bytes"),
        ({"com/example/one/1.0/one-1.0.war.md5": b"0" * 32}, "com/example/one/1.0/one-1.0.war", "but not the file"),
        ({f"{JAR}.asc": b"signed"}, f"{JAR}.asc", "no armoured PGP signature"),
        ({f"{JAR}.asc": SIGNATURE[:-10]}, f"{JAR}.asc", "no armoured PGP signature"),
        ({f"{JAR}.asc": bytes(1024 * 1024 + 1)}, f"{JAR}.asc", "larger than 1048576 bytes"),
        ({f"{JAR}.sigstore.json": b"{"}, f"{JAR}.sigstore.json", "not JSON"),
        ({f"{JAR}.sigstore.json": b"[]"}, f"{JAR}.sigstore.json", "no bundle of sigstore"),
        ({"com/example/one/1.0/one-1.0.war.asc": SIGNATURE}, "com/example/one/1.0/one-1.0.war.asc", "but not the file"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_path(change, path, expected):
    members = {name: content for name, content in {**ONE, **change}.items() if content is not None}
    found = problems_of(members)
    assert list(found) == [path]
    assert expected in found[path][0]


def test_every_problem_is_reported_not_only_the_first():
    found = problems_of({"a": b"", "b": b"", POM: b"<x>", f"{JAR}.md5": b"", JAR: b"x"})
    assert sorted(found) == sorted(["a", "b", POM, f"{JAR}.md5"])


def test_problems_are_counted_after_the_first_hundred():
    found = problems_of([(f"{number}", b"") for number in range(500)])
    assert len(found) == MOST_ERRORS + 1
    assert found[""] == ["and 400 more problems"]


@pytest.mark.parametrize("make", MAKERS)
def test_an_archive_without_artifacts_is_refused(make):
    for members in ({}, {"maven-metadata.xml": b"<metadata/>"}):
        _, _, problems = check(make(members))
        assert problems.texts() == {"": ["the deployment has no file of an artifact"]}


def test_a_gradle_module_stands_for_a_pom_and_placeholders_of_a_pom_match_anything():
    module = {JAR: ONE[JAR], JAR.replace(".jar", ".module"): b"{}"}
    assert problems_of(module) == {}
    assert problems_of({JAR: ONE[JAR], POM: make_pom("com.example", "one", "${revision}")}) == {}


def test_a_pom_of_a_snapshot_may_name_the_build():
    pom = next(path for path in TWO if path.endswith(".pom"))
    named = make_pom("com.example.deep", "two", "2.0-20240102.030405-6")
    assert problems_of({**TWO, pom: named}) == {}
    assert list(problems_of({**TWO, pom: make_pom("com.example.deep", "two", "2.0-20240102.030405-7")})) == [pom]


def test_a_classified_pom_is_a_file_like_others():
    other = JAR.replace(".jar", "-consumer.pom")
    assert problems_of({**ONE, other: b"anything"}) == {}


def test_signatures_are_accepted():
    signed = {**ONE, f"{JAR}.asc": SIGNATURE, f"{JAR}.sigstore.json": b'{"mediaType": "x"}'}
    assert problems_of(with_checksums(signed)) == {}


@pytest.mark.parametrize(
    ("requirements", "missing"),
    [
        (DeployRequirements(signatures=True), [JAR, POM]),
        (DeployRequirements(sources=True), [JAR]),
        (DeployRequirements(javadoc=True), [JAR]),
    ],
)
def test_what_the_repository_requires_is_reported_for_each_file(requirements, missing):
    assert sorted(problems_of(ONE, requirements=requirements)) == missing


def test_a_whole_release_satisfies_all_requirements():
    stem = JAR.removesuffix(".jar")
    whole = {**ONE, f"{stem}-sources.jar": b"s", f"{stem}-javadoc.jar": b"j"}
    whole |= {f"{path}.asc": SIGNATURE for path in whole}
    assert problems_of(whole, requirements=DeployRequirements(signatures=True, sources=True, javadoc=True)) == {}


def test_two_entries_for_one_path_are_refused():
    _, _, problems = check(make_tar([*ONE.items(), (JAR, b"other")]))
    assert problems.texts() == {JAR: ["the bundle has two files at this path"]}
    _, _, problems = check(make_tar([*ONE.items(), (f"{JAR}.md5", b"0" * 32), (f"{JAR}.md5", b"1" * 32)]))
    assert problems.texts() == {f"{JAR}.md5": ["the bundle has two checksums at this path"]}
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = make_zip([*ONE.items(), (JAR, b"other")])
    with pytest.raises(Invalid, match="two entries"):
        check(data)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "a//b", "a\\b", "a\nb", "C:/x", "."])
def test_unsafe_names_are_refused(make, name):
    with pytest.raises(Invalid):
        check(make([*ONE.items(), (name, b"x")]))


def test_a_name_with_nul_ends_there_in_tar_and_is_refused_in_zip():
    with pytest.raises(Invalid):
        check(make_zip([("com/example/one/1.0/one-1.0.jar\x00.txt", b"x")]))


def test_a_name_that_is_not_utf8_is_refused_with_its_path():
    data = bytearray(make_tar([*ONE.items(), ("xyz", b"")]))
    at = data.rindex(b"xyz\x00")
    data[at : at + 3] = b"\xff\xfe\xfd"
    checksum = sum(data[at : at + 148]) + sum(data[at + 156 : at + 512]) + 8 * 32
    data[at + 148 : at + 156] = b"%06o\x00 " % checksum
    _, _, problems = check(bytes(data))
    assert list(problems.texts()) == ["\\udcff\\udcfe\\udcfd"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(kind):
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        info = tarfile.TarInfo(JAR)
        info.type = kind
        info.linkname = "com/example/one/1.0/one-1.0.pom"
        archive.addfile(info)
    with pytest.raises(Invalid):
        check(target.getvalue())


@pytest.mark.parametrize("make", MAKERS)
def test_an_archive_that_unpacks_to_more_than_the_limit_is_refused(make):
    data = make({**ONE, "com/example/one/1.0/one-1.0.bin": bytes(100_000)})
    assert not check(data, limit=200_000)[2]
    with pytest.raises(Invalid, match="unpacks to more than 100000 bytes"):
        check(data, limit=100_000)


@pytest.mark.parametrize("make", MAKERS)
def test_an_archive_that_ends_early_is_refused(make):
    data = make(ONE)
    with pytest.raises(Invalid):
        check(data[: 700 if make is make_tar else len(data) // 2])  # the second half of the tar archive is padding


def test_other_bytes_are_no_archive():
    for data in (b"PK", b"x" * 10_000, b"\x1f\x8b\x08" + b"x" * 1000, b"PK\x03\x04" + bytes(100)):
        with pytest.raises(Invalid):
            check(data)


def test_more_files_than_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr("pkgrepo.formats.maven.deploy.contents.MOST_FILES", 3)
    assert problems_of(ONE) == {}
    found = check(make_zip({**ONE, **TWO}))[2]
    assert (found.status, found.texts()[""]) == (413, ["a deployment has at most 3 files"])


def test_a_wrong_digest_is_a_problem_of_its_file():
    problems = Problems()
    check_digests("p", {"md5": "0", "sha1": "1"}, {"md5": "0", "sha1": "2"}, problems)
    assert problems.texts() == {"p": ["sha1 mismatch: the deployment says 1, the file has 2"]}


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [([], 400), ([400], 400), ([400, 409], 409), ([409, 403, 400], 403), ([403, 507], 507), ([418], 400)],
)
def test_the_gravest_status_counts(statuses, expected):
    problems = Problems()
    for status in statuses:
        problems.add("p", "no", status)
    assert problems.status == expected


def test_the_first_sentence_has_its_path():
    assert first_sentence({}) == ""
    assert first_sentence({"": ["whole"]}) == "whole"
    assert first_sentence({"p": ["part"], "q": ["x"]}) == "p: part"

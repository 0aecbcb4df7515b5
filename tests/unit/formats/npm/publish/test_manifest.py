"""The stored manifest of a version, and checks of announced digests."""

import hashlib

import pytest

from pkgrepo.errors import DigestMismatch, Invalid
from pkgrepo.formats.npm.publish.manifest import MAPS, README_LENGTH, check_announced, clean_manifest, make_dist
from pkgrepo.formats.npm.publish.tarball import TarballContents
from pkgrepo.formats.npm.semver import parse_version
from tests.support.npm_packages import make_dist as announced

DATA = b"tarball"
DIGESTS = {each: hashlib.new(each, DATA).hexdigest() for each in ("sha1", "sha256", "sha512")}


def contents(*, has_gyp: bool = False, has_shrinkwrap: bool = False) -> TarballContents:
    return TarballContents(manifest={}, file_count=3, unpacked_size=456, has_gyp=has_gyp, has_shrinkwrap=has_shrinkwrap)


def cleaned(sent: dict[str, object], look: TarballContents | None = None):
    return clean_manifest({"name": "x", **sent}, name="x", version=parse_version("1.0.0"), contents=look or contents())


def test_private_keys_of_clients_are_removed() -> None:
    sent = {
        "version": "v1.0.0",
        "description": "d",
        "custom": {"deep": [1]},
        "_id": "y@2",
        "_nodeVersion": "22",
        "_npmVersion": "11",
        "_from": "file:x.tgz",
        "_resolved": "/home/somebody/x.tgz",
        "_integrity": "sha512-",
        "_npmUser": {"name": "mallory"},
        "_hasShrinkwrap": True,
        "integrity": "sha512-",
        "shasum": "00",
        "dist": {"tarball": "http://elsewhere"},
        "readme": "# x",
        "readmeFilename": "README.md",
        "deprecated": "old",
        "hasInstallScript": True,
        "license": None,
    }
    result = cleaned(sent)
    assert result.fields == {
        "name": "x",
        "version": "1.0.0",
        "description": "d",
        "custom": {"deep": [1]},
        "_id": "x@1.0.0",
        "_nodeVersion": "22",
        "_npmVersion": "11",
        "_hasShrinkwrap": False,
    }
    assert (result.readme, result.readme_filename, result.deprecated) == ("# x", "README.md", "old")


def test_long_readme_is_cut() -> None:
    assert len(cleaned({"readme": "é" * 100_000}).readme) == README_LENGTH


@pytest.mark.parametrize("script", ["preinstall", "install", "postinstall"])
def test_install_scripts_set_the_flag(script: str) -> None:
    assert cleaned({"scripts": {script: "node x"}}).fields["hasInstallScript"] is True


def test_binding_gyp_sets_the_install_script_flag() -> None:
    assert cleaned({}, contents(has_gyp=True)).fields["hasInstallScript"] is True
    assert "hasInstallScript" not in cleaned({"scripts": {"test": "t", "install": ""}}).fields
    assert cleaned({}, contents(has_shrinkwrap=True)).fields["_hasShrinkwrap"] is True


@pytest.mark.parametrize("field", MAPS)
@pytest.mark.parametrize("value", [["a"], [{}], "x", {"a": 1}, {"a": None}])
def test_maps_must_be_maps_of_texts(field: str, value: object) -> None:
    with pytest.raises(Invalid, match=field):
        cleaned({field: value})


@pytest.mark.parametrize(
    "field",
    [*MAPS, "peerDependenciesMeta", "acceptDependencies", "bin", "directories", "engines"],
)
def test_empty_list_in_the_place_of_a_map_is_an_empty_map(field: str) -> None:
    """PHP and Lua write an empty map so; other registries, and clients, take it for one."""
    assert cleaned({field: []}).fields[field] == {}


def test_lists_that_mean_something_stay() -> None:
    lists: dict[str, object] = {"files": [], "keywords": [], "bundleDependencies": [], "os": [], "bin": ["x.js"]}
    assert cleaned(lists).fields.items() >= lists.items()


def test_private_packages_are_refused() -> None:
    assert cleaned({"private": False}).fields["private"] is False
    with pytest.raises(Invalid, match="marked as private"):
        cleaned({"private": True})


def test_dist_is_computed() -> None:
    assert make_dist(DIGESTS, contents(), {"predicateType": "p"}) == {
        "integrity": announced("x", "1.0.0", DATA)["integrity"],
        "shasum": DIGESTS["sha1"],
        "fileCount": 3,
        "unpackedSize": 456,
        "attestations": {"provenance": {"predicateType": "p"}},
    }
    assert set(make_dist(DIGESTS, contents())) == {"integrity", "shasum", "fileCount", "unpackedSize"}


RIGHT = announced("x", "1.0.0", DATA)


@pytest.mark.parametrize(
    "dist",
    [
        None,
        {},
        RIGHT,
        {"shasum": RIGHT["shasum"].upper()},
        {"integrity": RIGHT["integrity"] + "?option"},
        {"integrity": "sha384-AAAA " + RIGHT["integrity"]},
        {"shasum": None, "integrity": 1},
    ],
)
def test_correct_announced_digests_are_accepted(dist: object) -> None:
    check_announced({"dist": dist}, DIGESTS)


WRONG = announced("x", "1.0.0", b"other")


@pytest.mark.parametrize(
    ("dist", "algorithm"),
    [
        ({**RIGHT, "shasum": WRONG["shasum"]}, "sha1"),
        ({**RIGHT, "integrity": WRONG["integrity"]}, "sha512"),
        ({"integrity": f"{RIGHT['integrity']} {WRONG['integrity']}"}, "sha512"),
        ({"integrity": "sha256-AAAA"}, "sha256"),
    ],
)
def test_other_bytes_than_announced_are_refused(dist: dict[str, str], algorithm: str) -> None:
    with pytest.raises(DigestMismatch) as caught:
        check_announced({"dist": dist}, DIGESTS)
    assert caught.value.algorithm == algorithm


def test_unreadable_integrity_is_refused() -> None:
    with pytest.raises(Invalid, match="not base64"):
        check_announced({"dist": {"integrity": "sha512-*"}}, DIGESTS)


def test_long_integrity_is_refused_before_it_is_split() -> None:
    with pytest.raises(Invalid, match="longer than 4096 characters"):
        check_announced({"dist": {"integrity": "a-b " * 1025}}, DIGESTS)

"""The newest versions, and what they need."""

import json

import msgspec
import pytest

from pkgrepo.formats.conda.index.packages import FolderRecords, PackageRecords
from pkgrepo.formats.conda.index.texts import current_text
from pkgrepo.repositories.publish.package_lists import PackageList


def package(name, *versions):
    """A package with versions as pairs of text and dependencies."""
    records = b"".join(
        b',"%b-%b-0.conda":%b'
        % (name.encode(), text.encode(), msgspec.json.encode({"version": text, "depends": needs}))
        for text, needs in versions
    )
    folder = FolderRecords(name, {".conda": records, ".tar.bz2": b""}, {".conda": b"", ".tar.bz2": b""})
    return name, PackageRecords(name, {"noarch": folder}, b"{}")


def shown(*packages):
    document = json.loads(b"".join(current_text(PackageList(sorted(packages)), "noarch")))
    return {file.removesuffix("-0.conda") for file in document["packages.conda"]}


OLD_NEEDS = [("1.0", ["deep <2"]), ("1.10", []), ("1.9", [])]


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ([], set()),
        (["lib >=1"], set()),
        (["lib <1.5"], {"lib-1.0", "deep-1.0"}),
        (["lib 1.9.*"], {"lib-1.9"}),
        (["lib >2", "unknown", "lib[version='1']"], set()),
    ],
)
def test_older_versions_are_shown_only_if_they_are_needed(needs, expected):
    packages = [
        package("app", ("1.0", ["lib 1.9"]), ("2.0", needs)),
        package("deep", ("1.0", ["lib"]), ("2.0", [])),
        package("lib", *OLD_NEEDS),
    ]
    assert shown(*packages) == {"app-2.0", "deep-2.0", "lib-1.10"} | expected


def test_packages_that_need_each_other_are_shown_once():
    assert shown(package("a", ("1.0", ["b"])), package("b", ("1.0", ["a"]))) == {"a-1.0", "b-1.0"}

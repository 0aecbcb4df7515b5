"""What is read from the files of packages, and which files are refused."""

import bz2

import pytest
import zstandard

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.anatomy import read_package
from pkgrepo.formats.conda.names import parse_file_name
from tests.support.conda_packages import (
    info_members,
    make_conda,
    make_index,
    make_tar,
    make_tar_bz2,
    pack_conda,
)

STEM = "demo-1.0-py_0"
DOCUMENTS = {"about.json": {"summary": "A demo"}, "run_exports.json": {"weak": ["demo >=1"], "strong": []}}


def read(data, ending=".conda", stem=STEM):
    return read_package(data, parse_file_name(stem + ending))


def conda_of(members):
    return pack_conda(STEM, zstandard.compress(make_tar(members)))


def bz2_of(members):
    return bz2.compress(make_tar(members))


@pytest.mark.parametrize(("make", "ending"), [(make_conda, ".conda"), (make_tar_bz2, ".tar.bz2")])
def test_both_kinds_of_files_say_the_same(make, ending):
    found = read(make(depends=["python >=3.8"], documents=DOCUMENTS, payload=[("bin/demo", b"#!")]), ending)
    assert found.index == {**make_index(depends=["python >=3.8"]), "constrains": []}
    assert found.about == {"summary": "A demo"}
    assert found.exports == {"weak": ["demo >=1"]}


@pytest.mark.parametrize("exports", ["demo", ["demo"], {"weak": "demo"}])
def test_run_exports_in_old_spellings_are_weak_ones(exports):
    assert read(make_conda(documents={"run_exports.json": exports})).exports == {"weak": ["demo"]}


@pytest.mark.parametrize("stem", ["demo-1.0-py_1", "demo-1.1-py_0", "other-1.0-py_0"])
def test_a_package_under_another_name_is_refused(stem):
    with pytest.raises(Invalid, match=r"says .*demo-1\.0-py_0"):
        read(make_tar_bz2(), ".tar.bz2", stem)


@pytest.mark.parametrize(
    "more",
    [
        {"name": None},
        {"build_number": "0"},
        {"build_number": -1},
        {"depends": "python"},
        {"depends": [1]},
        {"version": "1..0"},
        {"name": "../demo"},
    ],
)
def test_an_index_that_clients_could_not_use_is_refused(more):
    members = info_members({**make_index(), **more} if more.get("name", "") is not None else {"version": "1.0"})
    with pytest.raises(Invalid):
        read(conda_of(members))


def test_payload_before_the_info_folder_is_passed_over():
    members = [("bin/demo", b"x" * 1000), *info_members(make_index()), ("lib/demo", b"")]
    assert read(bz2_of(members), ".tar.bz2").index["name"] == "demo"

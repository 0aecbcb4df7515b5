"""Names, versions and file names of conda packages."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.names import SUBDIRS, check_name, check_subdir, check_version, parse_file_name, version_key


@pytest.mark.parametrize(
    "name", ["a", "_libgcc_mutex", "font-ttf-inconsolata", "libstdcxx-ng", "gcc_linux-64", "a" * 128]
)
def test_names_of_packages_are_taken(name):
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "__glibc", "Demo", "-a", ".a", "a-", "a.", "a b", "a/b", "a" * 129, "é"])
def test_names_that_no_channel_has_are_refused(name):
    with pytest.raises(Invalid):
        check_name(name)


@pytest.mark.parametrize("version", ["1", "1.0.1a", "1!2.0", "1.0.1_", "2.0rc1", "1.0+cu121.dev", "1.1.post1", "2024a"])
def test_versions_that_conda_compares_are_taken(version):
    assert check_version(version) == version


@pytest.mark.parametrize(
    "version", ["", "1..2", "1.0-1", "1.", "1.0+", "a!1", "1!", "_1", "1__2", "1 0", "1" * 65, "1+_"]
)
def test_versions_that_conda_cannot_compare_are_refused(version):
    with pytest.raises(Invalid):
        check_version(version)


def test_versions_that_differ_in_case_are_one():
    assert version_key("1.0RC1") == version_key("1.0rc1")


def test_a_file_name_is_split_at_its_last_dashes():
    name = parse_file_name("gcc_linux-64-12.3.0-h0_1.tar.bz2")
    assert (name.name, name.version, name.build, name.ending) == ("gcc_linux-64", "12.3.0", "h0_1", ".tar.bz2")
    assert str(name) == "gcc_linux-64-12.3.0-h0_1.tar.bz2"


@pytest.mark.parametrize(
    "text", ["a-1.conda", "a-1-0.zip", "a-1-0", "-1-0.conda", "a--0.conda", "a-1-.conda", f"{'a' * 220}-1-0.conda"]
)
def test_other_file_names_are_refused(text):
    with pytest.raises(Invalid):
        parse_file_name(text)


def test_platforms_are_those_that_conda_knows():
    assert [check_subdir(each) for each in SUBDIRS] == list(SUBDIRS)
    with pytest.raises(Invalid):
        check_subdir("linux-128")

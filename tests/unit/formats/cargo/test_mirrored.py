"""Lock files of cargo, and the names of files in folders."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.cargo.imported import read_path
from pkgrepo.formats.cargo.mirrored import read_lock

SUM = "cd" * 32
NEWER = f"""\
version = 4

[[package]]
name = "app"
version = "0.1.0"
dependencies = ["serde"]

[[package]]
name = "serde"
version = "1.0.0"
source = "registry+https://index.example/"
checksum = "{SUM}"

[[package]]
name = "other"
version = "2.0.0+b"
source = "sparse+https://other.example/"

[[package]]
name = "forked"
version = "0.3.0"
source = "git+https://git.example/forked#abc"
"""
OLDER = f"""\
[[package]]
name = "serde"
version = "1.0.0"
source = "registry+https://index.example/"

[metadata]
"checksum serde 1.0.0 (registry+https://index.example/)" = "{SUM}"
"""


def test_crates_of_registries_are_wanted_and_those_of_version_control_are_left_out():
    lock = read_lock(NEWER)
    assert [(each.name, each.version, each.digests) for each in lock.wanted] == [
        ("serde", "1.0.0", frozenset({("sha256", SUM)})),
        ("other", "2.0.0+b", frozenset()),
    ]
    assert lock.left_out == [("forked 0.3.0", "it does not come from a registry")]


def test_the_first_version_has_its_sums_in_a_table():
    assert read_lock(OLDER).wanted[0].digests == frozenset({("sha256", SUM)})


@pytest.mark.parametrize("text", ["", "[a", "a = 1\n"])
def test_another_file_is_refused(text):
    with pytest.raises(Invalid):
        read_lock(text)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("foo-1.0.0.crate", ("foo", "1.0.0")), ("a/Foo-1-2-1.0.0-rc.1+b.crate", ("foo-1-2", "1.0.0-rc.1+b"))],
)
def test_a_file_in_a_folder_is_named_by_crate_and_version(path, expected):
    assert read_path(path) == expected


@pytest.mark.parametrize("path", ["foo.crate", "1-1.0.0.crate", "foo-1.0.crate", "foo-1.0.0.tar"])
def test_another_name_is_no_crate(path):
    with pytest.raises(Invalid):
        read_path(path)

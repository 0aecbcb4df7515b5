"""Names of crates, requirements, and places in the index."""

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.formats.cargo.names import check_new_name, normal_requirement, package_key, parse_version, prefix, spelling
from pkgrepo.repositories.semver import RANGES, accepts


@pytest.mark.parametrize("name", ["", "1a", "-a", "a.b", "a b", "é", "a" * 65, "a/b"])
def test_a_name_has_letters_digits_and_two_signs(name):
    with pytest.raises(Invalid, match="invalid crate name"):
        package_key(name)


def test_the_key_has_the_signs_of_the_name_and_the_spelling_has_not():
    assert package_key("Foo_A-b") == "foo_a-b"
    assert spelling("Foo_A-b") == spelling("fOO-a_B") == "foo-a-b"


@pytest.mark.parametrize("name", ["_a", "nul", "CON", "com7", "LPT1"])
def test_a_new_name_can_be_a_file_on_every_system(name):
    package_key(name)
    with pytest.raises(Invalid):
        check_new_name(name, standard=False)


@pytest.mark.parametrize("name", ["std", "proc-macro", "proc_macro", "Core"])
def test_names_of_the_compiler_are_refused_unless_the_policy_allows_them(name):
    with pytest.raises(Invalid, match="standard_names"):
        check_new_name(name, standard=True)
    check_new_name(name, standard=False)


def test_a_crate_has_its_place_by_the_length_of_its_name():
    assert [prefix(each) for each in ("a", "ab", "abc", "abcd", "foo_b-c")] == ["1", "2", "3/a", "ab/cd", "fo/o_"]


def test_a_version_is_short():
    assert parse_version("1.0.0-" + "a" * 144).is_prerelease
    with pytest.raises(Invalid):
        parse_version("1.0.0-" + "a" * 145)


@pytest.mark.parametrize(
    ("written", "sent"),
    [("1", "^1"), (" 1.2.3 ", "^1.2.3"), (">= 1.2 , <2", ">=1.2, <2"), ("*", "*"), ("1.*", "1.*"), ("=1.0", "=1.0")],
)
def test_a_requirement_is_written_as_cargo_sends_it(written, sent):
    assert normal_requirement(written) == sent


@pytest.mark.parametrize(
    ("requirement", "accepted", "refused"),
    [
        ("^1.2", "1.9.0", "2.0.0"),
        ("0.3", "0.3.9", "0.4.0"),
        ("~1.2.3", "1.2.9", "1.3.0"),
        (">=1.0, <1.5", "1.4.9", "1.5.0"),
        ("1.*", "1.9.9", "2.0.0"),
        ("*", "9.0.0", "9.0.0-rc.1"),
        ("=1.0.0-rc.1", "1.0.0-rc.1", "1.0.0"),
    ],
)
def test_a_dependency_accepts_what_cargo_would_take(requirement, accepted, refused):
    assert accepts(f"dep {requirement}", accepted) is True
    assert accepts(f"dep {requirement}", refused) is False


@pytest.mark.parametrize(("dependency", "version"), [("dep what", "1.0.0"), ("dep ^1", "1"), ("dep", "1.0.0")])
def test_what_cannot_be_read_is_not_decided(dependency, version):
    assert accepts(dependency, version) is None


@pytest.mark.parametrize(
    ("text", "meant", "other"),
    [
        ("^1.2", "1.3.0-rc.1", "2.0.0"),
        ("~1.2", "1.2.9", "1.3.0"),
        ("1.2.*", "1.2.7", "1.3.0"),
        ("1.2", "1.2.9", "1.3.0"),
    ],
)
def test_people_mean_versions_by_the_same_signs(text, meant, other):
    test = RANGES.test(text)
    assert test(meant)
    assert not test(other)

"""Constraints of dependencies."""

import pytest

from pkgrepo.formats.conda.versions import satisfies, split_dependency


@pytest.mark.parametrize(
    ("constraint", "taken", "refused"),
    [
        ("", ["1", "2a"], []),
        ("*", ["1", "2a"], []),
        ("1.2", ["1.2", "1.2.0"], ["1.2.1", "1.20"]),
        ("==1.2", ["1.2", "1.2.0"], ["1.2.1"]),
        ("=1.2", ["1.2", "1.2.9", "1.2a"], ["1.20", "1.3"]),
        ("1.2.*", ["1.2", "1.2.9"], ["1.20", "1.3"]),
        ("1.2*", ["1.2", "1.2.9"], ["1.3"]),
        ("!=1.2", ["1.3"], ["1.2", "1.2.0"]),
        ("!=1.2.*", ["1.3"], ["1.2.5"]),
        (">=1.2,<2.0a0", ["1.2", "1.10"], ["1.1", "2.0", "2.0a0"]),
        ("~=1.4.2", ["1.4.2", "1.4.9"], ["1.4.1", "1.5"]),
        ("1.0|>2", ["1.0", "3"], ["2", "1.5"]),
    ],
)
def test_a_constraint_takes_versions_as_in_conda(constraint, taken, refused):
    assert [each for each in taken + refused if satisfies(each, constraint)] == taken


@pytest.mark.parametrize("constraint", ["^1[.]2$", "(1|2),3", "1 2"])
def test_a_constraint_in_another_form_is_not_read(constraint):
    with pytest.raises(ValueError, match="unknown form"):
        satisfies("1.2", constraint)


@pytest.mark.parametrize(
    ("text", "name", "constraint"),
    [
        ("python", "python", ""),
        ("python >=3.8", "python", ">=3.8"),
        ("python 3.8.* *_cpython", "python", "3.8.*"),
        ("python>=3.8", "python", ">=3.8"),
        ("Python=3", "python", "=3"),
    ],
)
def test_a_dependency_is_split(text, name, constraint):
    assert split_dependency(text) == (name, constraint)


def test_a_dependency_with_brackets_is_not_read():
    with pytest.raises(ValueError, match="unknown form"):
        split_dependency("python[version='>=3']")

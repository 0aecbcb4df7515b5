"""The order of versions, compared with conda's own algorithm, and the constraints that they satisfy."""

import re
from itertools import pairwise, zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.names import check_version
from pkgrepo.formats.conda.versions import order_key, satisfies, split_dependency

# The example in the documentation of conda's VersionOrder.
ORDERED = [
    "0.4",
    "0.4.1.rc",
    "0.4.1",
    "0.5a1",
    "0.5b3",
    "0.5C1",
    "0.5",
    "0.9.6",
    "0.960923",
    "1.0",
    "1.1dev1",
    "1.1_",
    "1.1a1",
    "1.1.0dev1",
    "1.1.a1",
    "1.1.0rc1",
    "1.1.0",
    "1.1.0post1",
    "1.1post1",
    "1996.07.12",
    "1!0.4.1",
    "1!3.1.1.6",
    "2!0.4.1",
]


class Reference:
    """The algorithm of CEP 33, as conda has it: lists of lists that are compared element by element."""

    def __init__(self, text):
        epoch, mark, rest = text.lower().rpartition("!")
        main, plus, local = rest.partition("+")
        if main.endswith("_"):
            parts = main[:-1].replace("_", ".").split(".")
            parts[-1] += "_"
        else:
            parts = main.replace("_", ".").split(".")
        self.version = [self.split(part) for part in [epoch if mark else "0", *parts]]
        self.local = [self.split(part) for part in local.replace("_", ".").split(".")] if plus else []

    @staticmethod
    def split(part):
        runs = re.findall(r"([0-9]+|[*]+|[^0-9*]+)", part)
        words = {"post": float("inf"), "dev": "DEV"}
        found = [int(run) if run.isdigit() else words.get(run, run) for run in runs]
        return found if part[0].isdigit() else [0, *found]

    def compare(self, other):
        for ours, theirs in ((self.version, other.version), (self.local, other.local)):
            for left, right in zip_longest(ours, theirs, fillvalue=[]):
                for a, b in zip_longest(left, right, fillvalue=0):
                    if a != b:
                        if isinstance(a, str) != isinstance(b, str):
                            return -1 if isinstance(a, str) else 1
                        return -1 if a < b else 1
        return 0


def sign(left, right):
    return (left > right) - (left < right)


def is_version(text):
    try:
        check_version(text)
    except Invalid:
        return False
    return True


WORDS = st.sampled_from(
    ["0", "1", "00", "2", "10", "a", "b", "rc", "dev", "post", "_", ".", "z", "1a", "0a", "DEV", "+"]
)
VERSIONS = st.lists(WORDS, min_size=1, max_size=8).map("".join).filter(is_version)
EPOCHS = st.sampled_from(["", "", "0!", "1!"])


def test_versions_are_in_the_documented_order():
    for lower, higher in pairwise(ORDERED):
        assert Reference(lower).compare(Reference(higher)) == -1, (lower, higher)
        assert order_key(lower) < order_key(higher), (lower, higher)


@settings(max_examples=300, deadline=None)
@given(EPOCHS, VERSIONS, EPOCHS, VERSIONS)
def test_any_two_versions_compare_as_in_conda(epoch, left, other_epoch, right):
    left, right = epoch + left, other_epoch + right
    assert sign(order_key(left), order_key(right)) == Reference(left).compare(Reference(right))


@pytest.mark.parametrize(
    ("left", "right"), [("1.0", "1.0.0"), ("1.0", "0!1"), ("1.a", "1.0a"), ("1RC", "1rc"), ("1", "1+0")]
)
def test_versions_that_conda_takes_for_equal_have_one_key(left, right):
    assert order_key(left) == order_key(right)


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

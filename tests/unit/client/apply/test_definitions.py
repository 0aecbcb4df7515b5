"""Files that describe repositories are read strictly, and settings on the command line are set in place."""

import pytest

from pkgrepo.client.apply.definitions import (
    ABSENT,
    Difference,
    differences,
    read_definitions,
    with_assignments,
    without_secrets,
)
from pkgrepo.client.repositories.commands import split_path
from pkgrepo.errors import Invalid

FILE = """
[[repositories]]
name = "all"
format = "npm"
config = {type = "Virtual", members = ["main/node"]}

[[repositories]]
name = "node"
format = "npm"
visibility = "public"
"""


def test_repositories_without_members_come_first(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(FILE)
    assert [each.path for each in read_definitions(path).repositories] == ["main/node", "main/all"]


def test_json_is_read_as_well(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"repositories": [{"storage": "other", "name": "x", "format": "python", "active": false}]}')
    (found,) = read_definitions(path).repositories
    assert (found.path, found.type, found.active) == ("other/x", "Hosted", False)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("repositories = 1", "Expected `array`"),
        ('[[repositories]]\nname = "a"', "missing required field `format`"),
        ('[[repositories]]\nname = "a"\nformat = "b"\nvisible = true', "unknown field `visible`"),
        ("[[repositories]", "cannot be read"),
        ('[[repositories]]\nname="a"\nformat="b"\n[[repositories]]\nname="A"\nformat="b"', "main/A is there twice"),
        ("[[storages]]", "unknown field|missing required field"),
        ('[[groups]]\nname="a"\n[[groups]]\nname="A"', "A is there twice"),
        ('[[projects]]\nkey="a"\nmembers=[{role="owner"}]', "name either a user or a group"),
    ],
    ids=["type", "missing", "unknown", "syntax", "twice", "other", "groups", "member"],
)
def test_mistakes_are_named(tmp_path, content, sentence):
    path = tmp_path / "a.toml"
    path.write_text(content)
    with pytest.raises(Invalid, match=sentence):
        read_definitions(path)


def test_assignments_set_values_in_place_and_leave_the_original_alone():
    config = {"type": "Hosted", "policy": None}
    changed = with_assignments(config, ["policy.allow=true", "a.b.c=[1]", "text=plain words", "empty="])
    assert changed == {
        "type": "Hosted",
        "policy": {"allow": True},
        "a": {"b": {"c": [1]}},
        "text": "plain words",
        "empty": "",
    }
    assert config == {"type": "Hosted", "policy": None}


@pytest.mark.parametrize("text", ["a", "=1", "a..b=1", "type.x=1"], ids=["none", "name", "dots", "text"])
def test_wrong_assignments_are_refused(text):
    with pytest.raises(Invalid):
        with_assignments({"type": "Hosted"}, [text])


@pytest.mark.parametrize("path", ["py", "/py", "main/", "a/b/c", ""], ids=["bare", "name", "storage", "three", "empty"])
def test_a_repository_has_a_storage_and_a_name(path):
    with pytest.raises(Invalid, match="STORAGE/REPOSITORY"):
        split_path(path)


def lines(before, after):
    return [line for each in differences(before, after) for line in each.lines()]


def test_equal_values_have_none():
    value = {"a": [1, {"b": None}], "c": "x"}
    assert differences(value, {"c": "x", "a": [1, {"b": None}]}) == []


def test_members_of_objects_and_lists_are_compared_one_by_one():
    before = {"type": "Proxy", "routes": [{"url": "a", "priority": 1}], "gone": True}
    after = {"type": "Proxy", "routes": [{"url": "b", "priority": 1}], "new": [1]}
    assert differences(before, after) == [
        Difference("/routes/0/url", "a", "b"),
        Difference("/gone", True, ABSENT),
        Difference("/new", ABSENT, [1]),
    ]
    assert lines(before, after) == [
        '  - /routes/0/url: "a"',
        '  + /routes/0/url: "b"',
        "  - /gone: true",
        "  + /new: [1]",
    ]


def test_lists_of_other_lengths_are_shown_whole():
    assert lines({"a": [1]}, {"a": [1, 2]}) == ["  - /a: [1]", "  + /a: [1,2]"]


def test_true_is_not_one_and_null_is_not_absent():
    assert differences({"a": True}, {"a": 1}) == [Difference("/a", True, 1)]
    assert differences({"a": None}, {}) == [Difference("/a", None, ABSENT)]
    assert differences({"a": 1}, {"a": 1.0}) == [Difference("/a", 1, 1.0)]


def test_keys_are_escaped_as_in_a_json_pointer():
    assert differences({}, {"a/b~c": 1}) == [Difference("/a~1b~0c", ABSENT, 1)]


def test_no_secret_is_shown():
    before = {"auth": {"username": "ci", "password": "***"}}
    after = {"auth": {"username": "ci", "password": "s3cret"}}
    assert lines(before, after) == ["  ~ /auth/password: a secret, which is set again"]
    created = lines({}, {"routes": [{"auth": {"token": "s3cret"}}]})
    assert created == ['  + /routes: [{"auth":{"token":"***"}}]']
    assert without_secrets({"token": {"password": "x"}}) == {"token": {"password": "***"}}

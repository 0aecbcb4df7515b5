"""Differences of configurations are told by pointer, and no secret is."""

from pkgrepo.commands.remote.repositories.differences import ABSENT, Difference, differences, without_secrets


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

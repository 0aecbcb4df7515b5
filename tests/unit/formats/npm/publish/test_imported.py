"""The stored manifests of versions that another registry had."""

from pkgrepo.formats.npm.publish.imported import _NOTHING, _clean
from pkgrepo.formats.npm.semver import parse_version


def test_fields_of_a_wrong_type_are_left_out_and_empty_lists_are_empty_maps() -> None:
    served = {"dependencies": ["a"], "devDependencies": [], "scripts": {"test": 1}, "private": True, "bin": []}
    fields = _clean({**served, "bundleDependencies": ["a"]}, "x", parse_version("1.0.0"), _NOTHING).fields
    assert "dependencies" not in fields
    assert "scripts" not in fields
    assert "private" not in fields
    assert (fields["bin"], fields["bundleDependencies"]) == ({}, ["a"])
    assert _clean({"dependencies": []}, "x", parse_version("1.0.0"), _NOTHING).fields["dependencies"] == {}

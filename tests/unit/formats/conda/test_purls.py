"""The package URLs that conda packages name."""

from __future__ import annotations

from pkgrepo.formats.conda.format import conda


def test_a_package_made_of_a_wheel_is_its_project() -> None:
    purls = conda().purls
    assert purls is not None
    wheel = "packages/typing-extensions/4.1/typing_extensions-4.1-1-py3-none-any.whl"
    named = {"index": {"purls": ["pkg:pypi/x@1", "x", 1]}, "derived_from": {"path": wheel, "sha256": "0" * 64}}
    assert purls({}, [named, named]) == ["pkg:pypi/x@1", "pkg:pypi/typing-extensions@4.1"]
    assert purls({"purls": "pkg:npm/a@1, b"}, [{"index": {"purls": "pkg:pypi/y"}}, {}]) == ["pkg:npm/a@1"]

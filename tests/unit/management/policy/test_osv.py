"""Which package of which ecosystem a question about vulnerabilities is about."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from pkgrepo.errors import Invalid
from pkgrepo.management.policy.osv import OsvPackage, OsvQuestion, _read

CALL: Any = SimpleNamespace(services=SimpleNamespace(formats=make_formats(Config())))


def read(version: str = "", **package: str) -> tuple[str, str, str]:
    key, text, ecosystem = _read(CALL, OsvQuestion(package=OsvPackage(**package), version=version))
    return key, text, ecosystem.name


def test_a_package_is_named_by_its_ecosystem_or_its_package_url() -> None:
    assert read("1.0", name="Demo_X", ecosystem="PyPI") == ("demo-x", "1.0", "PyPI")
    assert read("1.0", name="demo", ecosystem="PyPI:more") == ("demo", "1.0", "PyPI")
    assert read("1.0", purl="pkg:npm/%40acme/x") == ("@acme/x", "1.0", "npm")
    assert read("1.0", purl="pkg:npm/x@2.0") == ("x", "2.0", "npm"), "that in the package URL counts"


@pytest.mark.parametrize(
    ("version", "package", "reason"),
    [
        ("1.0", {"name": "x", "ecosystem": "Nowhere"}, "one of Go, Maven, PyPI, RubyGems, crates.io, npm"),
        ("1.0", {"name": "x"}, "the ecosystem is one of"),
        ("1.0", {"purl": "pkg:docker/acme/x"}, "with one of the types cargo, golang, maven, npm, pypi, gem"),
        ("1.0", {"purl": "pkg:conda/x"}, "with one of the types"),
        ("1.0", {"ecosystem": "npm"}, "names a package and a version"),
        ("", {"name": "x", "ecosystem": "npm"}, "names a package and a version"),
        ("", {"purl": "pkg:npm/x"}, "names a package and a version"),
    ],
    ids=range(7),
)
def test_other_questions_are_refused(version: str, package: dict[str, str], reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        read(version, **package)

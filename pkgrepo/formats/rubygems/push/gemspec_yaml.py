"""
Reads a gem's ``metadata.gz``: a ``Gem::Specification`` in YAML.

Gems are older than most rules. What the indexes need must be right; other fields are taken if they have a form that a
version of RubyGems wrote, and are otherwise left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from pkgrepo.archives.source import Source
from pkgrepo.errors import Invalid
from pkgrepo.formats.rubygems.gemspec import ANY, DEVELOPMENT, RUNTIME, Dependency, GemSpec, Requirement
from pkgrepo.formats.rubygems.limits import (
    LONGEST_LINE,
    LONGEST_TEXT,
    LONGEST_VERSION,
    MOST_BOUNDS,
    MOST_DEPENDENCIES,
    MOST_LINES,
    MOST_REQUIREMENTS,
)
from pkgrepo.formats.rubygems.names import (
    RUBY,
    check_file_name,
    check_name,
    check_platform,
    check_version,
    full_version,
    is_name,
)
from pkgrepo.untrusted.text import quoted

from .yaml_documents import EQUALS, SPECIFICATION, read_document

METADATA: Final = "metadata.gz"

_OPERATORS: Final = frozenset({"=", "!=", ">", "<", ">=", "<=", "~>"})
_DATE: Final = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_NO_DATE: Final = date(1980, 1, 2)  # Gem::DEFAULT_SOURCE_DATE_EPOCH of RubyGems
# In requirements a dash is allowed, as in Gem::Version: gems exist that ask for "1.0-beta".
_BOUND: Final = re.compile(r"[0-9]+(?:\.[0-9A-Za-z]+)*(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?")
# Line ends and other control characters would break the lines of indexes and JSON that people read.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_TEXT: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def parse_gemspec(source: Source, data: bytes) -> tuple[GemSpec, bool]:
    """
    The specification in the bytes of an uncompressed ``metadata.gz``, and whether it has a chain of certificates.

    :raises Invalid: it is no specification, or one that clients could not install
    """
    fields = read_document(source, data, METADATA, SPECIFICATION)
    return spec_of_fields(fields), bool(fields.get("cert_chain"))


def spec_of_fields(fields: Mapping[str, Any]) -> GemSpec:
    """
    The specification with these fields, whose objects are mappings of their variables.

    :raises Invalid: it is one that clients could not install
    """
    name = check_name(_text(fields, "name") or "")
    number = check_version(_version(fields.get("version")) or "")
    original = fields.get("original_platform")
    platform = _platform(fields.get("platform"))
    check_file_name(name, full_version(number, platform))
    return GemSpec(
        name=name,
        number=number,
        platform=platform,
        original_platform=platform if original is None else _platform(original),
        rubygems_version=_version(fields.get("rubygems_version")) or "",
        date=_date(fields.get("date")),
        summary=_prose(fields, "summary") or "",
        description=_prose(fields, "description"),
        email=_email(fields),
        authors=_lines(fields, "authors") or _lines(fields, "author"),
        homepage=_text(fields, "homepage"),
        licenses=_lines(fields, "licenses"),
        metadata=_metadata(fields.get("metadata")),
        required_ruby=_requirement(fields.get("required_ruby_version"), "required_ruby_version"),
        required_rubygems=_requirement(fields.get("required_rubygems_version"), "required_rubygems_version"),
        dependencies=_dependencies(fields.get("dependencies"), name),
        extensions=bool(fields["extensions"]) if "extensions" in fields else None,
    )


def _text(fields: Mapping[str, Any], key: str) -> str | None:
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{key} must be a text", key)
    if len(value) > LONGEST_LINE:
        raise Invalid(f"{key} must have at most {LONGEST_LINE} characters", key)
    return _CONTROL.sub(" ", value).strip()


def _prose(fields: Mapping[str, Any], key: str) -> str | None:
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise Invalid(f"{key} must be a text of at most {LONGEST_TEXT} characters", key)
    return _BAD_TEXT.sub(" ", value)


def _lines(fields: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The texts of a list, or of a single text; other elements are left out."""
    value = fields.get(key)
    given = value if isinstance(value, list) else [value]
    if len(given) > MOST_LINES:
        raise Invalid(f"{key} must have at most {MOST_LINES} elements", key)
    found: list[str] = []
    for each in given:
        if isinstance(each, str):
            if len(each) > LONGEST_LINE:
                raise Invalid(f"{key} has an element of more than {LONGEST_LINE} characters", key)
            found.append(_CONTROL.sub(" ", each).strip())
    return tuple(found)


def _email(fields: Mapping[str, Any]) -> str | tuple[str, ...] | None:
    value = fields.get("email")
    found = _lines(fields, "email")
    if isinstance(value, list):
        return found
    return found[0] if found else None


def _metadata(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    if len(value) > MOST_LINES:
        raise Invalid(f"metadata must have at most {MOST_LINES} entries", "metadata")
    found: dict[str, str] = {}
    for key, text in value.items():
        if isinstance(text, str):
            if len(key) > LONGEST_LINE or len(text) > LONGEST_LINE:
                raise Invalid(f"metadata has an entry of more than {LONGEST_LINE} characters", "metadata")
            found[_CONTROL.sub(" ", key)] = _CONTROL.sub(" ", text)
    return found


def _version(value: Any) -> str | None:
    """The text of a ``Gem::Version``, or a plain text."""
    if isinstance(value, dict):
        value = value.get("version")
    if not isinstance(value, str) or len(value) > LONGEST_VERSION:
        return None
    return value.strip()


def _platform(value: Any) -> str:
    """The text of a platform: ``ruby``, or ``cpu-os[-version]`` of a ``Gem::Platform``."""
    if value is None or value == "":
        return RUBY
    if isinstance(value, dict):
        parts = [value.get(key) for key in ("cpu", "os", "version")]
        value = "-".join(part for part in parts if isinstance(part, str) and part)
    if not isinstance(value, str):
        raise Invalid("platform must be a text or a Gem::Platform", "platform")
    return check_platform(value)


def _date(value: Any) -> date:
    match = _DATE.match(value) if isinstance(value, str) else None
    if match is None:
        return _NO_DATE
    try:
        found = date(*map(int, match.groups()))
    except ValueError:
        return _NO_DATE
    return found if found.year >= 1900 else _NO_DATE  # Ruby's Time in Marshal counts years from 1900


def _dependencies(value: Any, name: str) -> tuple[Dependency, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise Invalid("dependencies must be a list", "dependencies")
    if len(value) > MOST_DEPENDENCIES:
        raise Invalid(f"{name} has more than {MOST_DEPENDENCIES} dependencies", "dependencies")
    found = tuple(map(_dependency, value))
    if sum(len(each.requirement) for each in found) > MOST_BOUNDS:
        raise Invalid(f"{name} has more than {MOST_BOUNDS} requirements of its dependencies together", "dependencies")
    keys = {(each.name, each.kind) for each in found}
    if len(keys) != len(found):
        raise Invalid(f"{name} names a gem twice among its dependencies", "dependencies")
    return found


def _dependency(value: Any) -> Dependency:
    name = value.get("name") if isinstance(value, dict) else None
    if not isinstance(name, str):  # as text it may be huge
        raise Invalid("a dependency has a name that is no text", "dependencies")
    if not is_name(name):
        raise Invalid(f"a dependency has the name {quoted(name)}, which no gem has", "dependencies")
    kind = value.get("type") or RUNTIME
    kind = kind.removeprefix(":") if isinstance(kind, str) else "none"
    if kind not in (RUNTIME, DEVELOPMENT):
        raise Invalid(f"the dependency {name} is of the unknown type {quoted(kind)}", "dependencies")
    # RubyGems before 1.3 wrote only the second one.
    given = value.get("requirement") or value.get("version_requirements") or value.get("version_requirement")
    return Dependency(name, kind, _requirement(given, name))


def _requirement(value: Any, what: str) -> Requirement:
    """The bounds of a ``Gem::Requirement``; without any, every version."""
    if isinstance(value, dict):
        value = value.get("requirements")
    if value is None or value == []:
        return ANY
    if not isinstance(value, list) or len(value) > MOST_REQUIREMENTS:
        raise Invalid(f"the requirement of {what} must be a list of at most {MOST_REQUIREMENTS} bounds", "dependencies")
    return tuple(_bound(each, what) for each in value)


def _bound(value: Any, what: str) -> tuple[str, str]:
    if isinstance(value, list) and len(value) == 2:
        operator, version = value
        if isinstance(operator, dict) and EQUALS in operator:
            operator = "="
        number = _version(version)
        if isinstance(operator, str) and operator in _OPERATORS and number is not None and _BOUND.fullmatch(number):
            return operator, number
    raise Invalid(f"the requirement of {what} has a bound that is no operator with a version", "dependencies")

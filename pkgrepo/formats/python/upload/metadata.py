"""
Parses core metadata (METADATA and PKG-INFO).

Values are kept as their author wrote them. Name, version and a supported metadata version are required; anything else
that is wrong becomes a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from email.errors import (
    FirstHeaderLineIsContinuationDefect,
    MisplacedEnvelopeHeaderDefect,
    MissingHeaderBodySeparatorDefect,
)
from email.message import Message
from email.parser import BytesHeaderParser
from typing import Any

from attrs import fields_dict, frozen
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from pkgrepo.errors import Invalid
from pkgrepo.formats.python.limits import (
    LONGEST_REQUIREMENT,
    MOST_BRACKETS,
    MOST_LINES,
    MOST_REQUIREMENTS,
    REQUIREMENTS_SIZE,
)
from pkgrepo.formats.python.names import FileName, normalise
from pkgrepo.formats.python.versions import find_version, parse_version

_HEAD_DEFECTS = (FirstHeaderLineIsContinuationDefect, MisplacedEnvelopeHeaderDefect, MissingHeaderBodySeparatorDefect)

_EMPTY_LINE = re.compile(rb"(?>\r\n|\n|\r)(?:\r\n|\n|\r)")
_FOLD = re.compile(r"(?:\r\n|\n|\r)(?: {7}\|| {8}|[ \t]*)")
_SUPPORTED = re.compile(r"[12]\.[0-9]{1,3}")

# All other fields are unfolded to one line.
_SEVERAL_LINES = frozenset({"description", "license"})

# Fields whose name in the JSON document is not their own name in lower case.
_ATTRIBUTES = {
    "license_file": "license_files",
    "classifier": "classifiers",
    "project_url": "project_urls",
    "import_name": "import_names",
    "import_namespace": "import_namespaces",
}


@frozen
class CoreMetadata:
    """
    The fields of one distribution; absent ones are empty.

    ``project_urls`` holds label and URL in one string, ``Label, url``, as the file does. ``warnings`` are sentences.
    """

    metadata_version: str
    name: str
    version: str
    summary: str = ""
    description: str = ""
    description_content_type: str = ""
    keywords: str = ""
    home_page: str = ""
    download_url: str = ""
    author: str = ""
    author_email: str = ""
    maintainer: str = ""
    maintainer_email: str = ""
    license: str = ""
    license_expression: str = ""
    requires_python: str | None = None
    license_files: tuple[str, ...] = ()
    classifiers: tuple[str, ...] = ()
    requires_dist: tuple[str, ...] = ()
    provides_extra: tuple[str, ...] = ()
    project_urls: tuple[str, ...] = ()
    platform: tuple[str, ...] = ()
    supported_platform: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    obsoletes: tuple[str, ...] = ()
    provides_dist: tuple[str, ...] = ()
    obsoletes_dist: tuple[str, ...] = ()
    requires_external: tuple[str, ...] = ()
    import_names: tuple[str, ...] = ()
    import_namespaces: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


_ALL = tuple(fields_dict(CoreMetadata))
_FIELDS = {name for name in _ALL if name != "warnings"}
_REPEATED = {name for name, attribute in fields_dict(CoreMetadata).items() if attribute.default == ()} - {"warnings"}


def parse_metadata(data: bytes, where: str) -> CoreMetadata:
    """
    Parse a METADATA or PKG-INFO file; ``where`` is its name, for error messages.

    :raises Invalid: name or version is missing or given twice, the metadata version is unknown, or a limit is exceeded
        (see ``limits``)
    """
    # Only the head is parsed: header fields about MIME parts and encodings of the body are for mail.
    end = _EMPTY_LINE.search(data)
    head, rest = (data, b"") if end is None else (data[: end.start()], data[end.end() :])
    if head.count(b"\n") + head.count(b"\r") > MOST_LINES:
        raise Invalid(f"the head of {where} has more than {MOST_LINES} lines", "content")
    message = BytesHeaderParser().parsebytes(head)
    warnings: list[str] = []
    # Other defects are about MIME, differ between releases of Python, and do not matter here.
    if any(isinstance(defect, _HEAD_DEFECTS) for defect in message.defects):
        warnings.append(f"{where} has lines that are not fields")
    found = _collect(message, where, warnings)
    body = _text(rest, where, "Description", warnings)
    if body:
        found["description"] = [body]
    metadata = CoreMetadata(**_values(found, where, warnings), warnings=tuple(warnings))
    _check_required(metadata, where)
    return metadata


def check_identity(metadata: CoreMetadata, filename: FileName, where: str) -> None:
    """
    Compare a distribution's metadata with its file name.

    :raises Invalid: project or version differ
    """
    if normalise(metadata.name) != filename.project_key:
        raise Invalid(f"{filename.filename} says in its {where} that its name is {metadata.name!r}", "name")
    if parse_version(metadata.version)[0] != filename.version_key:
        raise Invalid(f"{filename.filename} says in its {where} that its version is {metadata.version!r}", "version")


def meta_json(metadata: CoreMetadata) -> dict[str, Any]:
    """The non-empty fields, as the catalog stores them with the version."""
    found = ((name, getattr(metadata, name)) for name in _ALL)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found if value}


def _collect(message: Message, where: str, warnings: list[str]) -> dict[str, list[str]]:
    """Values by attribute name, in order."""
    found: dict[str, list[str]] = {}
    unknown: dict[str, None] = {}
    for name, raw in message.raw_items():
        key = name.lower().replace("-", "_")
        key = _ATTRIBUTES.get(key, key)
        if key not in _FIELDS:
            unknown[name] = None
            continue
        # The parser returns bytes beyond ASCII as surrogates.
        value = _text(str(raw).encode("ascii", "surrogateescape"), where, name, warnings)
        value = _FOLD.sub("\n" if key in _SEVERAL_LINES else " ", value).strip()
        if value and value != "UNKNOWN":  # written by distutils for an empty field
            found.setdefault(key, []).append(value)
    if unknown:
        warnings.append(f"{where} has unknown fields: {', '.join(list(unknown)[:10])}")
    return found


def _text(data: bytes, where: str, field: str, warnings: list[str]) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        warnings.append(f"{field} in {where} is not UTF-8")
        return data.decode("latin-1")


def _values(found: Mapping[str, Sequence[str]], where: str, warnings: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {"metadata_version": "", "name": "", "version": ""}
    for key, given in found.items():
        if key in _REPEATED:
            values[key] = tuple(given)
            continue
        values[key] = given[0]
        if len(set(given)) > 1:
            if key in ("metadata_version", "name", "version"):
                raise Invalid(f"{where} gives {key.replace('_', ' ')} more than once", key)
            warnings.append(f"{where} gives {key} more than once")
    if not _is_specifier(values.get("requires_python")):
        warnings.append(f"Requires-Python {values['requires_python'][:80]!r} is not a version specifier")
    requirements = values.get("requires_dist", ())
    _check_requirements(requirements, where)
    odd = [text for text in requirements if not _is_requirement(text)]
    if odd:
        warnings.append(f"{len(odd)} of Requires-Dist cannot be read, the first is {odd[0][:80]!r}")
    return values


def _check_requirements(requirements: Sequence[str], where: str) -> None:
    """Limit the CPU time of parsing."""
    if len(requirements) > MOST_REQUIREMENTS:
        raise Invalid(f"{where} has more than {MOST_REQUIREMENTS} Requires-Dist", "requires_dist")
    if sum(map(len, requirements)) > REQUIREMENTS_SIZE:
        raise Invalid(
            f"{where} has Requires-Dist of more than {REQUIREMENTS_SIZE} characters together", "requires_dist"
        )


def _is_specifier(text: str | None) -> bool:
    if text is not None and len(text) > LONGEST_REQUIREMENT:
        return False
    try:
        SpecifierSet(text or "")
    except InvalidSpecifier:
        return False
    return True


def _is_requirement(text: str) -> bool:
    if len(text) > LONGEST_REQUIREMENT or text.count("(") > MOST_BRACKETS:
        return False
    try:
        Requirement(text)
    except (InvalidRequirement, RecursionError):  # RecursionError: deeply nested brackets
        return False
    return True


def _check_required(metadata: CoreMetadata, where: str) -> None:
    if not _SUPPORTED.fullmatch(metadata.metadata_version):
        version = metadata.metadata_version
        raise Invalid(
            f"{where} has the metadata version {version!r}, and 1.0 to 2.x are known"
            if version
            else f"{where} has no Metadata-Version",
            "metadata_version",
        )
    if not metadata.name:
        raise Invalid(f"{where} has no Name", "name")
    normalise(metadata.name)
    if find_version(metadata.version) is None:
        raise Invalid(f"{where} has the version {metadata.version!r}, which PEP 440 does not allow", "version")

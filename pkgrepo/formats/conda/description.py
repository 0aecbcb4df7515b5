"""What a package says of itself in its ``info`` folder, and the record of it in the documents of a channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.names import LONGEST_TEXT, MOST_VALUES
from pkgrepo.untrusted.strict_json import check_value_count, decode_json
from pkgrepo.untrusted.text import quoted

from .names import NOARCH, FileName, check_build, check_name, check_subdir, check_version

ABOUT: Final = ("summary", "description", "home", "dev_url", "doc_url", "license", "license_family")
PURLS: Final = "purls"  # package URLs of what a package is made of
_LINKS: Final = {"doc_url": "Documentation", "dev_url": "Source"}

# The channel sets these, and some of them would lead clients elsewhere.
_SET_HERE: Final = frozenset({"fn", "url", "channel", "schannel", "md5", "sha256", "size"})
_DIGESTS: Final = ("md5", "sha256")
_EXPORTS: Final = ("weak", "strong", "noarch", "weak_constrains", "strong_constrains")


class IndexFields(msgspec.Struct):
    """The fields of ``info/index.json`` that clients compute with; other ones may have any value."""

    name: str
    version: str
    build: str
    build_number: int
    depends: list[str] = []
    constrains: list[str] = []
    subdir: str | None = None
    noarch: str | bool | None = None
    timestamp: int | float | None = None
    license: str | None = None
    license_family: str | None = None
    features: str | list[str] | None = None
    track_features: str | list[str] | None = None
    platform: str | None = None
    arch: str | None = None


@frozen
class Description:
    """
    The documents in the ``info`` folder.

    ``index`` is ``index.json``, ``about`` has the texts of ``about.json``, and ``exports`` is ``run_exports.json``, by
    kind (CEP 12).
    """

    index: Mapping[str, Any]
    about: Mapping[str, str]
    exports: Mapping[str, list[str]]


def parse_description(index: bytes, about: bytes | None, exports: bytes | None) -> Description:
    """
    The description of a package, from the bytes of its documents.

    :raises Invalid: one is malformed
    """
    return Description(
        _parse_index(_parse_object(index, "index.json")),
        {} if about is None else _parse_about(_parse_object(about, "about.json")),
        {} if exports is None else _parse_exports(_parse(exports, "run_exports.json")),
    )


def find_subdir(index: Mapping[str, Any]) -> str:
    """
    The platform that a package is for; old packages say it as ``platform`` and ``arch``.

    :raises Invalid: it says none, or one that conda does not know
    """
    subdir = index.get("subdir")
    if subdir is None:
        platform, arch = index.get("platform"), index.get("arch")
        bits = {"x86_64": "64", "x86": "32"}.get(arch or "", arch)
        subdir = f"{platform}-{bits}" if platform and bits else NOARCH
    return check_subdir(subdir)


def check_file_name(index: Mapping[str, Any], name: FileName) -> None:
    """Check that a package is what its file name says. :raises Invalid: it is another one"""
    said = f"{index['name']}-{index['version']}-{index['build']}"
    if said != name.stem:
        raise Invalid(f"the file is called {name}, and info/index.json in it says {quoted(said)}", "filename")


def record_of(index: Mapping[str, Any], subdir: str, digests: Mapping[str, str], size: int) -> dict[str, Any]:
    """The record in repodata of a package with these ``md5`` and ``sha256``."""
    record = {key: value for key, value in index.items() if key not in _SET_HERE}
    return {**record, "subdir": subdir, **{key: digests[key] for key in _DIGESTS if key in digests}, "size": size}


def meta_of(description: Description) -> dict[str, Any]:
    """The metadata of a version: the texts about it, its links and what it depends on, as the API shows them."""
    about = description.about
    links = [f"{label}, {about[key]}" for key, label in _LINKS.items() if key in about]
    found = {
        "license": description.index.get("license") or about.get("license"),
        "home_page": about.get("home"),
        "project_urls": links,
        "requires_dist": description.index["depends"],
    }
    return {**about, **{key: value for key, value in found.items() if value}}


def _parse(data: bytes, name: str) -> Any:
    check_value_count(data, MOST_VALUES, f"info/{name}")
    try:
        return decode_json(data)
    except Invalid as error:
        raise Invalid(f"info/{name}: {error.message}", "content") from None


def _parse_object(data: bytes, name: str) -> dict[str, Any]:
    value = _parse(data, name)
    if not isinstance(value, dict):
        raise Invalid(f"info/{name} is no JSON object", "content")
    return value


def _parse_index(value: dict[str, Any]) -> dict[str, Any]:
    try:
        fields = msgspec.convert(value, IndexFields)
    except msgspec.ValidationError as error:
        raise Invalid(f"info/index.json: {error}", "content") from None
    check_name(fields.name)
    check_version(fields.version)
    check_build(fields.build)
    if not 0 <= fields.build_number < 1 << 63:
        raise Invalid("info/index.json has a build_number that is too large or negative", "content")
    return {**value, "depends": fields.depends, "constrains": fields.constrains}


def _parse_about(value: dict[str, Any]) -> dict[str, str]:
    """The texts, each cut; some tools write lists of addresses, and recipes name package URLs in their ``extra``."""
    found = {}
    extra = value.get("extra")
    given = {**value, PURLS: value.get(PURLS) or (extra.get(PURLS) if isinstance(extra, dict) else None)}
    for key in (*ABOUT, PURLS):
        text = given.get(key)
        if isinstance(text, list):
            text = ", ".join(each for each in text if isinstance(each, str))
        if isinstance(text, str) and text:
            found[key] = text[:LONGEST_TEXT]
    return found


def _parse_exports(value: Any) -> dict[str, list[str]]:
    """By kind; old packages have a list, or one text, of weak ones alone."""
    if not isinstance(value, dict):
        value = {"weak": value}
    try:
        found = msgspec.convert({key: value[key] for key in _EXPORTS if value.get(key)}, dict[str, str | list[str]])
    except msgspec.ValidationError as error:
        raise Invalid(f"info/run_exports.json: {error}", "content") from None
    return {key: [each] if isinstance(each, str) else each for key, each in found.items()}

"""
What a chart says of itself: ``Chart.yaml`` in its archive, and the fields of it that indexes have.

Helm reads an index strictly: one field that it does not know, or of another kind, makes the whole index unusable. So a
field is taken if it is known and has its kind, and is left out otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pkgrepo.archives.one_folder import read_one_folder
from pkgrepo.archives.source import ArchiveLimits, Source
from pkgrepo.errors import Invalid
from pkgrepo.repositories.semver import parse_version
from pkgrepo.untrusted.fields import Read, flag_in, list_of, object_of, text_in, texts_in
from pkgrepo.untrusted.text import quoted
from pkgrepo.untrusted.yaml_text import read_mapping

from .names import check_name

MIB: Final = 1024 * 1024
LIMITS: Final = ArchiveLimits(unpacked=100 * MIB)  # what helm reads of a chart
LARGEST_FILE: Final = 5 * MIB  # helm reads no larger one in a chart
LARGEST_MANIFEST: Final = MIB
LICENCE: Final = "artifacthub.io/license"  # the annotation that says it

_SHOWN: Final = ("description", "keywords", "maintainers", "appVersion", "kubeVersion", "type", "deprecated", "icon")
_MANIFEST, _REQUIREMENTS = "Chart.yaml", "requirements.yaml"  # the latter has the dependencies of charts of v1


def _texts(*keys: str) -> dict[str, Read]:
    return dict.fromkeys(keys, text_in)


_DEPENDENCY: Final = object_of(
    {**_texts("name", "version", "repository", "condition", "alias"), "tags": list_of(text_in), "enabled": flag_in}
)
_FIELDS: Final = object_of(
    {
        **_texts("apiVersion", "name", "version", "appVersion", "description", "type", "kubeVersion", "icon", "home"),
        **_texts("condition", "tags"),
        **dict.fromkeys(("sources", "keywords"), list_of(text_in)),
        "deprecated": flag_in,
        "maintainers": list_of(object_of(_texts("name", "email", "url"))),
        "dependencies": list_of(_DEPENDENCY),
        "annotations": texts_in,
    }
)


def fields_of(manifest: Any) -> dict[str, Any]:
    """
    The fields of a ``Chart.yaml``, or of an entry in an index, that an index has.

    Its version may be none. :raises Invalid: it has no usable name
    """
    found: dict[str, Any] = _FIELDS(manifest)
    check_name(found.get("name", ""))
    return {"apiVersion": "v1", "version": "", **found}


def read_chart(file: int | bytes, filename: str) -> dict[str, Any]:
    """
    The fields of a chart, given as a file descriptor (which stays open) or as bytes. Blocks: call it in a thread.

    All of it is read. :raises Invalid: it is damaged, unsafe to unpack, or helm could not read it
    """
    source = Source(file, filename, LIMITS)
    wanted = dict.fromkeys((_MANIFEST, _REQUIREMENTS), LARGEST_MANIFEST)
    folder, found = read_one_folder(source, wanted.get, largest=LARGEST_FILE)
    if _MANIFEST not in found:
        raise source.refuse(f"is no chart: it has no {_MANIFEST} in its folder")
    try:
        manifest = read_mapping(found[_MANIFEST], _MANIFEST)
        if _REQUIREMENTS in found and "dependencies" not in manifest:
            manifest = {**read_mapping(found[_REQUIREMENTS], _REQUIREMENTS), **manifest}
        fields = fields_of(manifest)
        parse_version(fields["version"].removeprefix("v"))
    except Invalid as error:
        raise source.refuse(f"has a {_MANIFEST} that is not usable: {error.message}") from None
    if fields["name"] != folder:
        raise source.refuse(f"has its files in the folder {quoted(folder)}, and is the chart {quoted(fields['name'])}")
    return fields


def read_files(file: int | bytes, filename: str, beginning: str) -> dict[str, bytes]:
    """The files of a chart whose paths begin so. :raises Invalid: it is no chart, or they are too large together"""
    wanted = lambda inner: LARGEST_FILE if inner.startswith(beginning) else None  # noqa: E731
    return read_one_folder(Source(file, filename, LIMITS), wanted, most=LARGEST_FILE)[1]


def meta_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a version as the API and the console show them."""
    needs = (f"{each.get('name', '')} {each.get('version', '')}".strip() for each in fields.get("dependencies", ()))
    return {
        **{key: fields[key] for key in _SHOWN if key in fields},
        "license": fields.get("annotations", {}).get(LICENCE, ""),
        "home_page": fields.get("home", ""),
        "project_urls": [f"Source, {each}" for each in fields.get("sources", ())[:1]],
        "requires_dist": list(filter(None, needs)),
    }

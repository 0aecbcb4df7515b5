"""Which object of a list a person means: by its id, by the beginning of that, or by a name that it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pkgrepo.client.api import Client
from pkgrepo.client.http import Failed
from pkgrepo.client.named_versions import named_version
from pkgrepo.errors import Invalid

LEAST: Final = 4  # characters of the beginning of an id
WHOLE: Final = 32  # of an id, with dashes or without
MOST_SHOWN: Final = 5  # of several that are called the same
NAMES: Final = ("name", "package", "description")  # fields by which people call an object
VERSIONS: Final = ("version", "versions")
SAID: Final = (*NAMES, *VERSIONS, "repository", "state", "shown")  # what tells several of them apart
NOT_FOUND: Final = 404


async def whole_id(client: Client, collection: Sequence[str], text: str, *, paged: bool) -> str:
    """
    The id of the object that ``text`` means, one of the list at a path of the API (``collection``, in segments).

    :raises Failed: there is no such object, or the list cannot be had; :raises Invalid: several are meant
    """
    if len(text) >= WHOLE:
        return text
    records = await client.all_items(*collection) if paged else await client.get(*collection)
    return str(one_of(records, text)["id"])


def one_of(records: Sequence[Mapping[str, Any]], text: str) -> Mapping[str, Any]:
    """The object that ``text`` means. :raises Failed: there is no such object; :raises Invalid: several are meant"""
    found = [each for each in records if str(each["id"]) == text] or _meant(records, text)
    if not found:
        raise Failed(f"nothing there has the name {text!r}, or an id that begins so", NOT_FOUND)
    if len(found) > 1:
        each_said = [f"{each['id']} ({_said(each)})" for each in found[:MOST_SHOWN]]
        more = [f"{len(found) - MOST_SHOWN} more"] if len(found) > MOST_SHOWN else []
        raise Invalid(f"{text!r} means {len(found)} of them, name one by its id: {', '.join([*each_said, *more])}")
    return found[0]


def _meant(records: Iterable[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    """The records that have a name, with a version if the text has one; else those whose ids begin so."""
    every = [*records]
    wanted = [(text.casefold(), "")]
    try:
        name, version = named_version(text, None)
        wanted.append((name.casefold(), version))
    except Invalid:
        pass
    named = [each for each in every if any(_is_called(each, *one) for one in wanted)]
    begun = [each for each in every if str(each["id"]).startswith(text)] if len(text) >= LEAST else []
    return named or begun


def _is_called(record: Mapping[str, Any], name: str, version: str) -> bool:
    names = [str(record.get(each) or "") for each in NAMES]
    names += [each for each in record.get("repositories") or () if isinstance(each, str)]  # of a freeze
    if record.get("kind") == "repository":  # in the trash
        names.append(record["repository"])
    called = any(each.casefold() == name for each in names)
    return called and (not version or any(str(record.get(each) or "") == version for each in VERSIONS))


def _said(record: Mapping[str, Any]) -> str:
    return " ".join(str(record[each]) for each in SAID if record.get(each))

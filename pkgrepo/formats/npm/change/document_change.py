"""The change that a written-back document asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import Factory, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import names, semver
from pkgrepo.formats.npm.authorization import CHANGE_OWNERS, UNPUBLISH
from pkgrepo.formats.npm.limits import MOST_TAGS
from pkgrepo.untrusted.text import quoted

from .written_document import WrittenDocument

MOST_MAINTAINERS: Final = 1000


@frozen
class DocumentChange:
    """
    The change that a written-back document asks for. None and empty fields change nothing.

    ``kept`` are the keys of the versions that stay, all others are removed; ``tags`` then replace all tags.
    ``deprecated`` are messages by version key; an empty one ends a deprecation. A document with any asks for nothing
    else. ``star`` adds or removes the caller's star. ``named`` are the keys of the versions that it is about: with
    messages those that have one, else all that it has.
    """

    revision: str = ""
    kept: frozenset[str] | None = None
    tags: Mapping[str, str] | None = None
    deprecated: Mapping[str, str] = Factory(dict)
    maintainers: Sequence[Mapping[str, str]] | None = None
    star: bool | None = None
    named: frozenset[str] = frozenset()


def verb_of_change(change: DocumentChange) -> str:
    """The verb for what a document asks for, for the sentence of a refusal."""
    if change.kept is not None:
        return UNPUBLISH
    if change.deprecated:
        return "deprecate"
    return "change" if change.maintainers is None else CHANGE_OWNERS


def read_change(written: WrittenDocument, revision: str, username: str) -> DocumentChange:
    """
    The change that a document asks for. Call it in a thread for a document with thousands of versions.

    A document removes the versions that it leaves out, but only when it names its revision and has ``versions`` at
    all (``npm owner`` sends nothing but maintainers).

    :raises Invalid: a part of it is malformed, or its revision differs from the one in the request's address
    """
    document = written.members
    stated = document.get("_rev")
    if revision and stated not in (None, revision):
        raise Invalid("the document is of another revision than the one in the request's address", "_rev")
    sent = _mapping(document, "versions") if written.versions is None else written.versions
    removing = bool(revision) and sent is not None
    tags = _mapping(document, "dist-tags") if removing else None
    users = _mapping(document, "users") if not removing else None
    deprecated = {} if removing or sent is None else _messages(sent)
    named = frozenset(deprecated or _keys(sent or {}))
    return DocumentChange(
        revision=revision,
        kept=named if removing else None,
        tags=None if tags is None else _tags(tags),
        deprecated=deprecated,
        named=named,
        maintainers=_maintainers(document, sent),
        star=None if users is None or sent is not None else bool(users.get(username)),
    )


def _keys(sent: Mapping[str, Any]) -> Iterator[str]:
    gil = GilReleaser()
    for text in sent:
        version = semver.find_version(text)
        if version is not None:
            yield version.key
        gil.release_if_due()


def _tags(sent: Mapping[str, Any]) -> dict[str, str]:
    if len(sent) > MOST_TAGS:
        raise Invalid(f"the document has more than {MOST_TAGS} dist-tags", "dist-tags")
    for tag, text in sent.items():
        names.check_tag(tag)
        if not isinstance(text, str):
            raise Invalid(f"tag {quoted(tag)} must stand for a version", "dist-tags")
    return dict(sent)


def _messages(sent: Mapping[str, Any]) -> dict[str, str]:
    """The deprecation message of each version that has one; an empty one ends a deprecation."""
    messages: dict[str, str] = {}
    gil = GilReleaser()
    for text, message in sent.items():
        gil.release_if_due()
        if message is None:
            continue
        version = semver.find_version(text)
        if version is not None and isinstance(message, str):
            messages[version.key] = message
        elif version is not None and message is False:  # old clients send this
            messages[version.key] = ""
    return messages


def _maintainers(document: Mapping[str, Any], sent: Mapping[str, Any] | None) -> list[dict[str, str]] | None:
    """The maintainers of a document without versions; None when it does not change them."""
    given = document.get("maintainers")
    if given is None or sent is not None:
        return None
    if not isinstance(given, list) or len(given) > MOST_MAINTAINERS:
        raise Invalid(f"maintainers must be a list of at most {MOST_MAINTAINERS}", "maintainers")
    found: list[dict[str, str]] = []
    for each in given:
        name = each.get("name") if isinstance(each, dict) else None
        email = each.get("email", "") if isinstance(each, dict) else None
        if not isinstance(name, str) or not name or not isinstance(email, str):
            raise Invalid("a maintainer has a name and an email", "maintainers")
        found.append({"name": name, "email": email})
    return found


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = document.get(key)
    if value is not None and not isinstance(value, dict):
        raise Invalid(f"{key!r} must be an object", key)
    return value

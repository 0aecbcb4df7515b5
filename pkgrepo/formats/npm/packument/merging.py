"""One packument from what several repositories have of a package, without the versions that a rule hides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from attrs import evolve

from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.names import DEFAULT_TAG
from pkgrepo.proxy.resolving.members import Latest, LatestReason, MemberParts, merge_fragments, merge_versions
from pkgrepo.repositories.publish.index import BASE, Spliced

from .document import TOP_FIELDS, Top, revision, splice_full, splice_short
from .version_fragments import FULL, SHORT, TIME, version_document

_README: Final = {"readme": '""', "readmeFilename": '""'}


def splice(name: str, form: str, serial: int, members: Sequence[MemberParts]) -> Spliced:
    """
    The document of a package, in one form, from what each of its repositories has.

    Of several with the same version or tag the first one counts, and the first one's description. A tag of a hidden
    version is left out; ``latest`` goes to the highest release below it, else to the highest one of all.
    """
    top = merge_tops(members, form)
    if not top.revision:
        top = evolve(top, revision=revision(name, serial))
    times, versions = merge_fragments(members, TIME), merge_fragments(members, form)
    return splice_full(top, times, versions) if form == FULL else splice_short(top, times, versions)


def merge_tops(members: Sequence[MemberParts], form: str) -> Top:
    """The top of the merged document in one form, whose tags are those of versions that are shown."""
    top = _merge([msgspec.convert(member.top, Top) for member in members])
    return _without_hidden(top, form, members) if any(member.hidden for member in members) else top


def find_latest(members: Sequence[MemberParts]) -> Latest | None:
    """The version that the tag ``latest`` of the merged document names, and why."""
    version = merge_tops(members, SHORT).tags.get(DEFAULT_TAG)
    said = [msgspec.convert(member.top, Top).tags.get(DEFAULT_TAG) for member in members]
    number, first = next(((number, each) for number, each in enumerate(said) if each is not None), (None, None))
    if version is None or first is None:
        return None
    if version == first:
        return Latest(version, LatestReason.TAG, number)
    return Latest(version, LatestReason.REPLACED, number, first)


def _merge(tops: Sequence[Top]) -> Top:
    first = tops[0]
    if len(tops) == 1:
        return first
    tags = {tag: version for top in reversed(tops) for tag, version in top.tags.items()}
    created = min((top.created for top in tops if top.created), default="")
    return evolve(first, tags=tags, created=created, modified=max(top.modified for top in tops))


def _without_hidden(top: Top, form: str, members: Sequence[MemberParts]) -> Top:
    shown = merge_versions(members)
    known = frozenset(shown)
    tags = {tag: version for tag, version in top.tags.items() if version in known}
    latest = None if DEFAULT_TAG in tags else _find_latest(shown, top.tags.get(DEFAULT_TAG, ""))
    if latest is None:
        return evolve(top, tags=tags)
    fields = top.fields if form != FULL else _fields_of(latest, top, members)
    return evolve(top, tags={DEFAULT_TAG: latest.text, **tags}, fields=fields)


def _find_latest(shown: Sequence[str], hidden: str) -> semver.Version | None:
    """The version that becomes ``latest`` in place of a hidden one; None when no version is shown."""
    before = semver.find_version(hidden)
    below = [text for text in shown if (each := semver.find_version(text)) and before and each.sort < before.sort]
    latest = semver.highest_version(below)
    return semver.highest_version(shown) if latest is None or latest.is_prerelease else latest


def _fields_of(latest: semver.Version, top: Top, members: Sequence[MemberParts]) -> dict[str, str]:
    """The fields of the full form with those of another latest version; of its readme nothing is known."""
    fragments = (each.body for member in members for each in member.fragments[FULL] if each.key == latest.text)
    text = version_document(next(fragments)).replace(BASE, b"")
    manifest = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    kept = {key: value for key, value in top.fields.items() if key not in TOP_FIELDS}
    return {**kept, **_README, **{key: bytes(manifest[key]).decode() for key in TOP_FIELDS if key in manifest}}

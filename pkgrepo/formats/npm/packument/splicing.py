"""
Packuments are spliced from what repositories have of a package: read from the catalog or from upstreams, and merged.

Versions that a rule hides are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from attrs import evolve

from pkgrepo.errors import existing
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.names import DEFAULT_TAG
from pkgrepo.formats.npm.packument import document as packument
from pkgrepo.formats.npm.packument.document import (
    FULL,
    SHORT,
    TIME,
    TOP_FIELDS,
    Top,
    revision,
    splice_full,
    splice_short,
    version_document,
)
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.interfaces import Reader
from pkgrepo.model import Fragment, Package, Version, VersionState
from pkgrepo.proxy.format import Latest, LatestReason, MemberParts, merge_fragments
from pkgrepo.repositories.clock import format_time, from_ms
from pkgrepo.repositories.past import package_past
from pkgrepo.repositories.publish.splicing import BASE, Spliced
from pkgrepo.repositories.semver import highest_version
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages, tags, versions
from pkgrepo.storage.catalog.packages.versions import VersionRow

CACHE_SIZE: Final = 256 * 1024 * 1024  # bytes of cached documents, plain and gzip together

README_FIELDS: Final = ("readme", "readmeFilename")
WITHDRAWN: Final = "this version was withdrawn"
CONTENT_TYPES: Final = {FULL: packument.FULL_TYPE, SHORT: packument.SHORT_TYPE}

_encode = msgspec.json.Encoder().encode


KINDS: Final = {form: (form, TIME) for form in (FULL, SHORT)}

_README: Final = {"readme": '""', "readmeFilename": '""'}


def make_packuments() -> SplicedDocuments:
    """The spliced packuments of all repositories, with one cache."""
    return SplicedDocuments(CONTENT_TYPES, cache_size=CACHE_SIZE)


def manifest_of(version: Version) -> dict[str, Any]:
    """The manifest of a version, without the readme, which only the top of the document has."""
    return {key: value for key, value in version.meta.items() if key not in README_FIELDS}


def deprecation(version: Version | VersionRow) -> str:
    """The message that clients print when they install the version; empty when it is not deprecated."""
    if version.state is VersionState.LIVE:
        return ""
    return version.reason or (WITHDRAWN if version.state is VersionState.YANKED else "deprecated")


def read_parts(reader: Reader, repository_id: int, name: str, form: str) -> tuple[MemberParts, Package]:
    """
    What a hosted repository has of a package, for one form of its document, and the package, from one snapshot.

    :raises NotFound: no such package
    """
    package = existing(packages.find_package(reader, repository_id, name), "package", name)
    top = msgspec.to_builtins(read_top(reader, package, whole=form == FULL))
    return MemberParts(
        top, {kind: index_documents.list_fragments(reader, package.id, kind) for kind in KINDS[form]}
    ), package


def read_top(reader: Reader, package: Package, *, whole: bool, past: Mapping[str, str] | None = None) -> Top:
    """
    The top of a document, from the catalog; without ``whole`` only what the abbreviated form needs.

    ``past`` are the tags of a view of the past, in place of the present ones.
    """
    tagged = tags.tagged_versions(reader, package.id) if past is None else past
    version = semver.find_version(tagged.get(DEFAULT_TAG, ""))
    latest = None if version is None or not whole else versions.find_version(reader, package.id, version.key)
    return Top(
        name=package.name,
        tags=tagged,
        revision=packument.revision(package.name, package.serial),
        created=format_time(package.created_at),
        modified=format_time(package.updated_at),
        fields={} if latest is None else _fields(package, latest),
    )


def rewind(reader: Reader, package: Package, parts: MemberParts, form: str, at_ms: int) -> MemberParts:
    """The same parts with the tags and deprecations of a time, as far as the event log knows them."""
    every = versions.list_versions(reader, package.id)
    shown = [each for each in every if each.text not in parts.hidden]
    past = package_past(
        reader,
        package.id,
        at_ms,
        present={each.key: (each.state, each.reason) for each in shown},
        highest=_highest_text,
    )
    texts = [each.text for each in shown]
    said = tags.tagged_versions(reader, package.id) if past.tags is None else past.tags
    tagged = {tag: text for tag, text in ((tag, _spelt(text)) for tag, text in said.items()) if text in {*texts}}
    latest = None if DEFAULT_TAG in tagged else semver.latest_instead_of(said.get(DEFAULT_TAG, ""), texts)
    if latest is not None:
        tagged = {DEFAULT_TAG: latest.text, **tagged}
    states = {
        each.text: deprecation(evolve(each, state=past.states[each.key][0], reason=past.states[each.key][1]))
        for each in shown
        if each.key in past.states
    }
    fragments = {kind: [_rewound(each, kind, states) for each in found] for kind, found in parts.fragments.items()}
    top = packument.partial(read_top(reader, package, whole=form == FULL, past=tagged))
    if package.updated_at > from_ms(at_ms):
        # What was imported is older than the log of the package.
        changed = [each for each in (past.changed_ms, _newest_ms(fragments[TIME])) if each is not None]
        top = evolve(top, modified=format_time(from_ms(max(changed))) if changed else "")
    return evolve(parts, top=msgspec.to_builtins(top), fragments=fragments)


def _rewound(fragment: Fragment, kind: str, deprecated: Mapping[str, str]) -> Fragment:
    if kind not in (FULL, SHORT) or fragment.key not in deprecated:
        return fragment
    return Fragment(fragment.sort, fragment.key, packument.with_deprecation(fragment.body, deprecated[fragment.key]))


def _highest_text(texts: Iterable[str]) -> str | None:
    found = [each for each in map(semver.find_version, texts) if each is not None]
    highest = highest_version([each.text for each in sorted(found, key=lambda each: each.sort)])
    return None if highest is None else highest.text


def _spelt(text: str) -> str:
    """A version as it is published: people may write more than that when they set a tag."""
    found = semver.find_version(text)
    return text if found is None else found.text


def _fields(package: Package, latest: Version) -> dict[str, str]:
    """The further members of the full form: of the package, and of its latest version."""
    found = {"maintainers": package.meta.get("maintainers", [])}
    found |= {key: latest.meta[key] for key in packument.TOP_FIELDS if latest.meta.get(key) is not None}
    found |= {key: str(latest.meta.get(key, "")) for key in README_FIELDS}
    if users := package.meta.get("users"):
        found["users"] = dict.fromkeys(sorted(users), True)
    return {key: _encode(value).decode() for key, value in found.items()}


def splice(name: str, form: str, serial: int, members: Sequence[MemberParts]) -> Spliced:
    """
    The document of a package, in one form, from what each of its repositories has.

    Of several with the same version or tag the first one counts, and the first one's description. A tag of a version
    that the document does not have is left out, also of one that a rule hides; for ``latest`` see
    L{semver.latest_instead_of}. Versions that rules hide are ``restricted``, see L{Top}.
    """
    top = merge_tops(members, form)
    if members[0].withheld is not None:
        top = evolve(top, restricted=members[0].withheld.versions, restriction=members[0].withheld.why)
    if not top.revision:
        top = evolve(top, revision=revision(name, serial))
    times, versions = merge_fragments(members, TIME), merge_fragments(members, form)
    return splice_full(top, times, versions) if form == FULL else splice_short(top, times, versions)


def merge_tops(members: Sequence[MemberParts], form: str) -> Top:
    """The top of the merged document in one form, whose tags are those of versions that the document has."""
    top = _merge([_top_of(member) for member in members])
    if any(member.hidden for member in members):
        top = packument.partial(top)
    bodies = {packument.version_text(body): body for body in merge_fragments(members, form)}
    tags = {tag: version for tag, version in top.tags.items() if version in bodies}
    if len(tags) == len(top.tags):
        return top
    latest = None if DEFAULT_TAG in tags else semver.latest_instead_of(top.tags.get(DEFAULT_TAG, ""), [*bodies])
    if latest is None:
        return evolve(top, tags=tags)
    fields = top.fields if form != FULL else _fields_of(bodies[latest.text], top)
    return evolve(top, tags={DEFAULT_TAG: latest.text, **tags}, fields=fields)


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


def _top_of(member: MemberParts) -> Top:
    """The top of a member, which was not changed after the view that it is for."""
    top = msgspec.convert(member.top, Top)
    if member.at_ms is None or (packument.read_time(top.modified) or 0) <= member.at_ms:
        return top
    newest_ms = _newest_ms(member.fragments[TIME])
    return evolve(top, modified="" if newest_ms is None else format_time(from_ms(newest_ms)))


def _newest_ms(times: Sequence[Fragment]) -> int | None:
    """The newest of the times of versions."""
    found = [packument.read_time(msgspec.json.decode(each.body.partition(b":")[2], type=str)) for each in times]
    return max((each for each in found if each is not None), default=None)


def _merge(tops: Sequence[Top]) -> Top:
    first = tops[0]
    if len(tops) == 1:
        return first
    tags = {tag: version for top in reversed(tops) for tag, version in top.tags.items()}
    created = min((top.created for top in tops if top.created), default="")
    return evolve(first, tags=tags, created=created, modified=max(top.modified for top in tops))


def _fields_of(fragment: bytes, top: Top) -> dict[str, str]:
    """The fields of the full form with those of another latest version; of its readme nothing is known."""
    text = version_document(fragment).replace(BASE, b"")
    manifest = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    kept = {key: value for key, value in top.fields.items() if key not in TOP_FIELDS}
    return {**kept, **_README, **{key: bytes(manifest[key]).decode() for key in TOP_FIELDS if key in manifest}}

"""What one member of a repository has for a document, without what rules hide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from attrs import evolve

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Reader
from pkgrepo.model import Fragment
from pkgrepo.proxy.format import MemberParts, Proxied
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.values import Entry
from pkgrepo.proxy.remote_files import identity_of
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.rules import Verdict
from pkgrepo.storage.catalog.packages.versions import sorted_texts

from .serving import HostedMember

Hidden = tuple[Verdict, int | None]  # why a version is hidden, and when it was published


def hosted_parts(
    reader: Reader, format_: Proxied, member: HostedMember, key: str, form: str
) -> tuple[MemberParts, Mapping[str, Hidden]]:
    """What a hosted repository has for a document, without what rules hide, and that."""
    parts, package = format_.read_parts(reader, member.repository.id, key, form)
    judge = member.judge
    if judge is None:
        return parts, {}
    at_ms = judge.rules.at_ms
    versions, files = judge.hidden_files(reader, package.id)
    if not versions and not files:
        return parts if at_ms is None else format_.rewind(reader, package, parts, form, at_ms), {}
    if format_.version_of(key) in versions:
        raise NotFound("version", key)
    texts = {*versions, *(path.rpartition("/")[2] for path in files)}
    fragments = {
        kind: [each for each in found if each.key not in texts and each.key not in files]
        for kind, found in parts.fragments.items()
    }
    every = parts.versions or sorted_texts(reader, package.id)
    shown = [pair for pair in every if pair[1] not in versions]
    hidden = {text: (verdict, None) for text, verdict in versions.items()}
    held = _held_parts(parts, versions) if form in format_.lists_held else {}
    parts = evolve(parts, fragments=fragments, versions=shown, hidden=frozenset(versions), held=held)
    return parts if at_ms is None else format_.rewind(reader, package, parts, form, at_ms), hidden


def _held_parts(parts: MemberParts, hidden: Collection[str]) -> Mapping[str, Sequence[Fragment]]:
    """The fragments of some versions, by their texts."""
    found: dict[str, list[Fragment]] = {}
    texts = {sort: text for sort, text in parts.versions if text in hidden}
    for fragments in parts.fragments.values():
        for each in fragments:
            if each.sort in texts:
                found.setdefault(texts[each.sort], []).append(each)
    return found


def without_lacking(format_: Proxied, route: str, lacking: Mapping[str, str], entry: Entry) -> Entry:
    """An entry without the files that are known to be nowhere."""
    gone = [each.path for each in entry.files if lacking.get(each.path) == identity_of(route, each, entry)]
    return entry if not gone or format_.containers is None else format_.containers.without(entry, gone)


def upstream_parts(
    parts: PartsFile,
    section: bytes,
    kinds: Sequence[str],
    judge: Judge | None,
    route: str,
    amend: Callable[[Entry], Entry],
    *,
    lists_held: bool,
) -> tuple[MemberParts, Mapping[str, Hidden]]:
    """What an upstream's response has for some kinds of fragments, without versions that rules hide, and these."""
    fragments: dict[str, list[Fragment]] = {kind: [] for kind in kinds}
    versions: dict[str, bytes] = {}
    hidden: dict[str, Hidden] = {}
    held: dict[str, list[Fragment]] = {}
    read = kinds if judge is None else {*kinds, *judge.kinds}
    for entry in parts.entries(read, section):
        if judge is not None:
            verdict = judge.of_entry(entry, route)
            if not verdict.served:
                hidden.setdefault(entry.version, (verdict, entry.published_ms))
                if lists_held:
                    held.setdefault(entry.version, []).extend(_fragments(amend(entry), kinds))
                continue
        versions.setdefault(entry.version, entry.sort)
        shown_as = amend(entry)
        for kind in kinds:
            body = shown_as.fragments.get(kind)
            if body is not None:
                fragments[kind].append(Fragment(entry.sort, entry.key, body))
    shown = [(sort, text) for text, sort in versions.items()]
    unseen = {text: each for text, each in hidden.items() if text not in versions}
    at_ms = None if judge is None else judge.rules.at_ms
    held_of_unseen = {text: each for text, each in held.items() if text in unseen}
    return MemberParts(parts.top, fragments, shown, frozenset(unseen), at_ms=at_ms, held=held_of_unseen), unseen


def _fragments(entry: Entry, kinds: Sequence[str]) -> list[Fragment]:
    found = (entry.fragments.get(kind) for kind in kinds)
    return [Fragment(entry.sort, entry.key, body) for body in found if body is not None]

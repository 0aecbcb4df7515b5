"""What proxies and virtual repositories need of a package format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from attrs import Factory, evolve, frozen

from pkgrepo.archives.source import Source
from pkgrepo.errors import existing
from pkgrepo.interfaces import Reader
from pkgrepo.model import Fragment, Package, VersionState
from pkgrepo.proxy.addressed.request import FileRequest
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.incidents.shapes import Drilled
from pkgrepo.proxy.parts.values import Entry, FileSource
from pkgrepo.proxy.remote_files import MakeRelease, RemoteFile
from pkgrepo.repositories.past import package_past
from pkgrepo.repositories.policy.judged import Declares
from pkgrepo.repositories.policy.refusals import Withheld
from pkgrepo.repositories.policy.schema import Datum
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages, versions


class LatestReason(StrEnum):
    """Why a version is the latest one. The values are in the API."""

    TAG = "tag"  # a repository says so
    REPLACED = "replaced"  # it stands in for the one that a repository says, which a rule hides
    HIGHEST = "highest"  # the order of versions


@frozen
class Latest:
    """
    The latest version of a package as clients see it.

    ``member`` is the index of the repository that says it, or said ``hidden``; None if it follows from the order.
    """

    version: str
    reason: LatestReason
    member: int | None = None
    hidden: str = ""


@frozen
class MemberParts:
    """
    What one repository has of a package.

    ``top`` is what the format needs above the fragments. ``fragments`` are by kind and in order. ``versions`` are pairs
    (sort, text) of the versions that are shown, in order; ``hidden`` are the texts of those that a rule hides, which
    ``top`` may still name. ``refused`` says why nothing is shown where rules hide the versions of all repositories.
    ``at_ms`` is the time of the view that they are for, also if ``top`` is that of now; None for none. ``withheld`` are
    versions that rules hide in any member and none shows, in the parts of the first member and for a format that
    ``names_withheld``. ``held`` are the fragments of the versions that rules hide in this member, by their texts, in a
    form that ``lists_held``.
    """

    top: Mapping[str, Any]
    fragments: Mapping[str, Sequence[Fragment]]
    versions: Sequence[tuple[bytes, str]] = ()
    hidden: frozenset[str] = Factory(frozenset)
    refused: str = ""
    at_ms: int | None = None
    withheld: Withheld | None = None
    held: Mapping[str, Sequence[Fragment]] = Factory(dict)


@frozen(order=True)
class HeldFragment:
    """The fragment of a version that a rule hides, the text of the version, and a line that says why."""

    fragment: Fragment
    version: str
    why: str


def held_fragments(members: Sequence[MemberParts]) -> list[HeldFragment]:
    """
    The fragments of versions that rules hide and no member shows, in order; of several with one key the first.

    A version is the same in all its spellings: one that another member shows is not among them.
    """
    said = {} if members[0].withheld is None else members[0].withheld.lines
    shown = {sort for member in members for sort, _ in member.versions}
    shown.update(each.sort for member in members for found in member.fragments.values() for each in found)
    chosen: dict[str, HeldFragment] = {}
    for member in members:
        for text, found in member.held.items():
            for each in found if text in said else ():
                if each.sort not in shown:
                    chosen.setdefault(each.key, HeldFragment(each, text, said[text]))
    return sorted(chosen.values())


def merge_fragments(members: Sequence[MemberParts], kind: str) -> list[bytes]:
    """The fragments of one kind of all members, in order; of several with one key that of the first member."""
    if len(members) == 1:
        return [fragment.body for fragment in members[0].fragments[kind]]
    chosen: dict[str, Fragment] = {}
    for fragment in _each(members, kind):
        chosen.setdefault(fragment.key, fragment)
    return [fragment.body for fragment in sorted(chosen.values())]


def merge_versions(members: Sequence[MemberParts]) -> list[str]:
    """The versions that any member shows, in order."""
    if len(members) == 1:
        return [text for _, text in members[0].versions]
    chosen: dict[str, bytes] = {}
    for member in members:
        for sort, text in member.versions:
            chosen.setdefault(text, sort)
    return [text for _, text in sorted((sort, text) for text, sort in chosen.items())]


def read_by_version(reader: Reader, repository_id: int, key: str, form: str) -> tuple[MemberParts, Package]:
    """
    The fragments of a package of a hosted repository, which have the texts of versions as keys, and the package.

    A version without one is not shown. :raises NotFound: no such package
    """
    package = existing(packages.find_package(reader, repository_id, key), "package", key)
    found = index_documents.list_fragments(reader, package.id, form)
    listed = {each.key for each in found}
    sorts = [(sort, text) for sort, text in versions.sorted_texts(reader, package.id) if text in listed]
    return MemberParts({}, {form: found}, sorts), package


def latest_release(members: Sequence[MemberParts], is_prerelease: Callable[[str], bool]) -> Latest | None:
    """The highest release, or the highest prerelease if there is no release."""
    shown = merge_versions(members)
    found = [each for each in shown if not is_prerelease(each)] or shown
    return Latest(found[-1], LatestReason.HIGHEST) if found else None


def rewind(reader: Reader, package: Package, parts: MemberParts, _form: str, at_ms: int) -> MemberParts:
    """
    The same parts without the versions that were yanked at a time and restored since.

    What was yanked since is in no part: its files are not served any more. The fragments have the texts of versions as
    keys.
    """
    every = versions.list_versions(reader, package.id)
    past = package_past(reader, package.id, at_ms, present={each.key: (each.state, each.reason) for each in every})
    yanked = {each.text for each in every if past.states.get(each.key, (each.state, ""))[0] is VersionState.YANKED}
    if not yanked:
        return parts
    shown = [pair for pair in parts.versions if pair[1] not in yanked]
    fragments = {kind: [each for each in found if each.key not in yanked] for kind, found in parts.fragments.items()}
    return evolve(parts, fragments=fragments, versions=shown, hidden=parts.hidden | yanked)


def _each(members: Iterable[MemberParts], kind: str) -> Iterable[Fragment]:
    for member in members:
        yield from member.fragments[kind]


def _refuse_to_splice(key: str, *_: object) -> Spliced:
    raise NotImplementedError(f"clients do not ask for a document of {key}")


@frozen(kw_only=True, eq=False)
class Containers:
    """
    Of a format some of whose files are also in others.

    ``container_of`` is the file in which a file of an upstream is, or None. ``read_out`` reads the bytes of a file out
    of its container, which may lack parts; it blocks, and raises ``PartMissing`` and ``Invalid``. ``without`` is an
    entry that does not list the files at some paths, which neither the upstream nor their containers have; it may have
    some kinds of fragments only.
    """

    container_of: Callable[[RemoteFile], FileSource | None]
    read_out: Callable[[Source, RemoteFile], bytes]
    without: Callable[[Entry, Collection[str]], Entry]


@frozen(kw_only=True, eq=False)
class OwnFacts:
    """
    How the files of a format tell what documents of upstreams do not, or not for certain: ``data`` of rules.

    ``read`` reads the metadata in a file at a path, in the form of those of a hosted version; it blocks, and raises
    ``Invalid``. ``described_by`` are the paths of files that have the metadata of one, the smallest first, and that
    itself last. ``main_of`` is the path of the file that one at a path is beside, or of itself.

    With ``of_versions`` the files in ``described_by``, which are asked for by their paths, describe a whole version:
    each is read until all is known that is asked for. ``file_of`` is the path of a file of a version, by the key of the
    package and its text, so that the newest ones can be read before a document is answered.

    ``attestations`` is how upstreams are asked for those of a version, by the key of the package and its text, and
    ``attestations_in`` are they in the ``top`` of the answer. Without that they are in a file that documents list.
    """

    data: frozenset[Datum] = frozenset()
    read: Callable[[int | bytes, str], Mapping[str, Any]] = lambda _content, _path: {}
    described_by: Callable[[str], Sequence[str]] = lambda path: (path,)
    main_of: Callable[[str], str] = lambda path: path
    of_versions: bool = False
    file_of: Callable[[str, str], str] | None = None
    attestations: Callable[[str, str], DocumentRequest] | None = None
    attestations_in: Callable[[Mapping[str, Any]], bytes] = lambda _top: b""


@frozen(kw_only=True, eq=False)
class Proxied:
    """
    How a format's packages come from upstreams, and how the documents of several members are merged.

    A document lists the versions of a package, in one or more forms, and is joined from fragments: ``kinds`` are those
    of a form. ``package_of`` is the package of a document, by key; ``document_of`` is the document that lists the file
    of a package at a path.

    ``document_request`` is how upstreams are asked for a document. ``make_release`` makes the release by which a file
    from an upstream is kept, and raises ``Invalid`` if it is no file of its package; its bytes have the digests that
    were announced. ``read_parts`` is what the hosted repository with an id has of a document in a form, and the
    package; it raises ``NotFound``. ``splice`` makes a document of a serial from the parts of members, the most
    important one first; a format whose clients do not ask for documents of packages has none. ``latest`` is the latest
    version, from parts in ``latest_form``.

    ``file_request`` is how upstreams are asked for a file by its path, whether or not a document lists it; the key is
    empty for a file of no package. It raises ``NotFound`` if no upstream is asked for it.

    ``rewind`` gives the parts of a hosted repository for a document in a form, without what came later, the tags and
    states of another time; see L{pkgrepo.repositories.past}. It raises ``NotFound`` if there was nothing yet. A format
    that has neither needs none.

    ``version_of`` is the only version that a document is about, by its key; empty if it is about all. ``declares`` is
    where documents have the metadata of a version, such as its licence; None if none has any. ``own_facts`` is how
    files tell what these do not. ``drilled`` makes harmless packages for drills; None where no incident is known.
    Documents of a format that ``names_withheld`` have a place for versions that rules hide, and why, from which clients
    do not take them. Those in the forms that it ``lists_held`` have their fragments, marked so that clients choose none
    unless they are asked for exactly this version.
    """

    document_request: Callable[[str], DocumentRequest]
    make_release: MakeRelease
    kinds: Callable[[str], Sequence[str]]
    read_parts: Callable[[Reader, int, str, str], tuple[MemberParts, Package]]
    splice: Callable[[str, str, int, Sequence[MemberParts]], Spliced] = _refuse_to_splice
    latest_form: str
    latest: Callable[[str, Sequence[MemberParts]], Latest | None]
    package_of: Callable[[str], str] = lambda key: key
    document_of: Callable[[str, str], str] = lambda package_key, _path: package_key
    file_request: Callable[[str, str], FileRequest] | None = None
    containers: Containers | None = None
    rewind: Callable[[Reader, Package, MemberParts, str, int], MemberParts] = lambda _r, _package, parts, *_: parts
    version_of: Callable[[str], str] = lambda _key: ""
    declares: Declares | None = None
    own_facts: OwnFacts = OwnFacts()
    drilled: Drilled | None = None
    names_withheld: bool = False
    lists_held: frozenset[str] = frozenset()

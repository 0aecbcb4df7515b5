"""
Maintains the fragments of a project's pages, in the transaction of each change.

Each file has one fragment in each of the two forms of its project's page. The pages are joined at the first read, so
that the cost of a publish does not depend on the number of versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from pkgrepo.errors import Conflict, existing
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Fragment, Package, Version, VersionState
from pkgrepo.proxy.format import MemberParts, held_fragments, merge_fragments, merge_versions
from pkgrepo.repositories.past import package_past
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import files, packages, versions

from . import pages
from .pages import HELD_PAGE, HTML_PAGE, JSON_PAGE, KIND_OF_FRAGMENTS

JSON_TYPE = "application/vnd.pypi.simple.v1+json"
HTML_TYPE = "text/html; charset=utf-8"
CONTENT_TYPES = {JSON_PAGE: JSON_TYPE, HTML_PAGE: HTML_TYPE, HELD_PAGE: JSON_TYPE}
KINDS = {form: (kind,) for form, kind in KIND_OF_FRAGMENTS.items()}
CACHE_SIZE = 128 * 1024 * 1024  # bytes of pages in all content codings


def make_index() -> SplicedDocuments:
    """The cache of project pages of all repositories; it renders those that are missing."""
    return SplicedDocuments(CONTENT_TYPES, cache_size=CACHE_SIZE, zstd=True)


def index_project(index: PackageIndex, change: Change) -> None:
    """
    Bring the fragments of a project's pages up to date.

    :raises Conflict: a version would have two source distributions
    """
    version = change.version
    for file in change.removed:
        _forget(index, version, file)
    if version is not None:
        if change.added:
            _check_sdists(index.files_after(change))
        touched = change.added or ([] if change.removed else index.files(version))
        new: list[tuple[str, Fragment]] = []
        for file in _distributions(touched):
            entry = file_entry(file, version)
            new += (
                (JSON_PAGE, Fragment(version.sort, entry.filename, pages.file_fragment_json(entry))),
                (HTML_PAGE, Fragment(version.sort, entry.filename, pages.file_fragment_html(entry))),
            )
        index.put_fragments(new)


def file_entry(file: File, version: Version) -> pages.FileEntry:
    """The entry of a stored distribution in the simple index."""
    attrs, core_metadata = file.attrs, file.attrs.get("core_metadata")
    filename = file.path.rsplit("/", 1)[-1]
    url = "../../" + "/".join(pages.quote(part) for part in file.path.split("/"))
    return pages.FileEntry(
        filename=filename,
        url=url,
        hashes={"sha256": file.sha256},
        requires_python=attrs.get("requires_python"),
        size=file.size,
        upload_time=file.published_at,
        yanked=version.reason if version.state is VersionState.YANKED else False,
        core_metadata={"sha256": core_metadata} if core_metadata else False,
        has_sig=bool(attrs.get("signature")),
        provenance=f"{url}.provenance" if attrs.get("provenance") else None,
    )


def is_quarantined(package: Package) -> bool:
    """Whether the project's files are hidden (PEP 792)."""
    return package.meta.get("status") == "quarantined"


def read_parts(reader: Reader, repository_id: int, project: str, form: str) -> tuple[MemberParts, Package]:
    """The parts of a project's page, and the project, from one snapshot. :raises NotFound: no such project"""
    package = existing(packages.find_package(reader, repository_id, project), "project", project)
    top = {"status": package.meta.get("status", "active"), "reason": package.meta.get("status_reason")}
    kind = KIND_OF_FRAGMENTS[form]
    if is_quarantined(package):
        return MemberParts(top, {kind: ()}), package
    found = index_documents.list_fragments(reader, package.id, kind)
    return MemberParts(top, {kind: found}, versions.sorted_texts(reader, package.id)), package


def rewind(reader: Reader, package: Package, parts: MemberParts, form: str, at_ms: int) -> MemberParts:
    """The same parts with the yanked versions of a time, as far as the event log knows them."""
    shown = [each for each in versions.list_versions(reader, package.id) if each.text not in parts.hidden]
    present = {each.key: (each.state, each.reason) for each in shown}
    states = package_past(reader, package.id, at_ms, present=present).states
    kind = KIND_OF_FRAGMENTS[form]
    make = pages.file_fragment_json if kind == JSON_PAGE else pages.file_fragment_html
    made: dict[str, bytes] = {}
    for version in shown:
        if version.key in states:
            state, reason = states[version.key]
            then = evolve(version, state=state, reason=reason)
            entries = [file_entry(each, then) for each in _distributions(files.files_of_version(reader, version.id))]
            made |= {entry.filename: make(entry) for entry in entries}
    fragments = [Fragment(each.sort, each.key, made.get(each.key, each.body)) for each in parts.fragments[kind]]
    return evolve(parts, fragments={**parts.fragments, kind: fragments})


def splice(project: str, form: str, serial: int, members: Sequence[MemberParts]) -> Spliced:
    """
    A project's page from one or more repositories; the first one decides the project's status.

    An active project of which rules hide every file is shown as quarantined, with the reason: PEP 792 says of no other
    status that files are withheld. In the form that lists what rules hold it has these files, and is what it is.
    """
    kind = KIND_OF_FRAGMENTS[form]
    make = pages.project_page_json if kind == JSON_PAGE else pages.project_page_html
    top, held = members[0].top, held_fragments(members) if form == HELD_PAGE else []
    if members[0].refused and top["status"] == "active":
        top = {**top, "status": "active" if held else "quarantined", "reason": members[0].refused}
    return make(
        project,
        serial,
        [*merge_versions(members), *dict.fromkeys(each.version for each in held)],
        [*merge_fragments(members, kind), *(pages.hold_json(each.fragment.body, each.why) for each in held)],
        status=top["status"],
        reason=top["reason"],
        tracks=top.get("tracks", ()),
        alternate_locations=top.get("alternate_locations", ()),
    )


def _forget(index: PackageIndex, version: Version | None, file: File) -> None:
    if version is None or file.role is not None:
        return
    filename = file.path.rsplit("/", 1)[-1]
    index.remove_fragment(JSON_PAGE, version.sort, filename)
    index.remove_fragment(HTML_PAGE, version.sort, filename)


def _check_sdists(held: Iterable[File]) -> None:
    lenient = ("upstream", "imported")  # what is served as it was elsewhere
    published = [file for file in _distributions(held) if not any(each in file.attrs for each in lenient)]
    sdists = [file for file in published if file.attrs.get("packagetype") == "sdist"]
    if len(sdists) > 1:
        names = " and ".join(sorted(file.path.rsplit("/", 1)[-1] for file in sdists))
        raise Conflict(f"only one source distribution is allowed per version, not {names}")


def _distributions(held: Iterable[File]) -> list[File]:
    return [file for file in held if file.role is None]

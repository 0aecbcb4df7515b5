"""
The lists of versions: a fragment for each version, and the documents joined from them.

========  ============================  ==============================================================================
form      kinds of fragments            document
========  ============================  ==============================================================================
list      ``list``                      ``@v/list``
latest    ``list``, ``pseudo``          the version that ``@latest`` stands for; its ``.info`` is the response
info      ``info``                      what an upstream says that a query stands for; a hosted module has none
========  ============================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pkgrepo.errors import existing
from pkgrepo.interfaces import Reader
from pkgrepo.model import Package, VersionState
from pkgrepo.proxy.format import Latest, LatestReason, MemberParts, merge_fragments
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages

from .names import INFO, LIST, PSEUDO, kind_of, newest
from .names import KINDS as FILES

LATEST: Final = "latest"
KINDS: Final = {LIST: (LIST,), LATEST: (LIST, PSEUDO), INFO: (INFO,)}
CONTENT_TYPES: Final = {LIST: FILES["mod"], LATEST: FILES["mod"], INFO: FILES["info"]}


def index_module(index: PackageIndex, change: Change) -> None:
    """Bring the fragment of a changed version up to date. One that came from an upstream has none."""
    if (version := change.version) is None:
        return
    kind = kind_of(version.text)
    own = (each for each in index.files_after(change) if each.role is None and each.origin is None)
    if change.last or version.state is VersionState.YANKED or next(own, None) is None:
        index.remove_fragment(kind, version.sort, version.key)
    else:
        index.put_fragment(kind, version.sort, version.key, version.text.encode())


def read_parts(reader: Reader, repository_id: int, key: str, form: str) -> tuple[MemberParts, Package]:
    """The versions of a hosted module that are listed, and the module. :raises NotFound: there is none"""
    module, query, _ = key.partition("@")
    package = existing(None if query else packages.find_package(reader, repository_id, module), "version", key)
    found = {kind: index_documents.list_fragments(reader, package.id, kind) for kind in KINDS[LATEST]}
    versions = sorted((each.sort, each.key) for some in found.values() for each in some)
    return MemberParts({}, {kind: found[kind] for kind in KINDS[form]}, versions), package


def splice(key: str, form: str, _serial: int, members: Sequence[MemberParts]) -> Spliced:
    """The document of a form, from one or more repositories."""
    if form == LATEST:
        found = latest(key, members)
        return Spliced(b"", [] if found is None else [found.version.encode()], b"", b"")
    lines = merge_fragments(members, form)
    return Spliced(b"", lines[:1], b"", b"") if form == INFO else Spliced(b"", lines, b"\n" if lines else b"", b"\n")


def latest(_key: str, members: Sequence[MemberParts]) -> Latest | None:
    """The version that clients get who name none."""
    found = newest({text for member in members for _, text in member.versions})
    return None if found is None else Latest(found, LatestReason.HIGHEST)

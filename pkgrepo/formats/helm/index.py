"""
The index of a chart repository: an entry for each chart, which its change writes as a fragment.

It is JSON, which is YAML, too, and which helm reads many times as fast: every text in it is quoted, so that no version
becomes a number and no digest a time. The newest version of a chart comes first, as helm expects it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from attrs import evolve

from pkgrepo.gateway.whole_lists import Listed
from pkgrepo.model import Document, File, Version, VersionState
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.format import MemberParts, merge_fragments
from pkgrepo.proxy.parts.values import section_of
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.package_lists import GROUP_SIZE, PackageList
from pkgrepo.repositories.publish.splicing import Renderer, Spliced
from pkgrepo.storage.catalog.rows import to_ms

from .entries import ENTRY, LARGEST, normalise_index, render_entry
from .names import INDEX

CHART: Final = "chart"  # the attribute of a file that has the fields of its chart
ENTRIES: Final = "entries"
TYPE: Final = "application/x-yaml"

_renderer = Renderer(LARGEST // 2, LARGEST)


def index_request() -> DocumentRequest:
    """How upstreams are asked for their index."""
    return DocumentRequest(
        key=INDEX,
        package_key="",
        name=INDEX,
        urls=lambda url: [f"{url}/{INDEX}"],
        accept="*/*",
        normaliser=f"{normalise_index.__module__}:{normalise_index.__name__}",
    )


def chart_request(name: str) -> DocumentRequest:
    """How they are asked for the versions of a chart: a section of the index."""
    return evolve(index_request(), package_key=name, section=section_of(name))


def index_chart(index: PackageIndex, change: Change) -> None:
    """Bring the entry of a changed version up to date. One that was yanked has none."""
    version = change.version
    if version is None or change.last:
        return
    archive = next((each for each in index.files_after(change) if each.role is None), None)
    if archive is None or version.state is VersionState.YANKED:
        index.remove_fragment(ENTRY, version.sort, version.text)
    else:
        index.put_fragment(ENTRY, version.sort, version.text, _entry_of(version, archive))


def _entry_of(version: Version, archive: File) -> bytes:
    fields = archive.attrs[CHART]
    if version.state is VersionState.DEPRECATED:
        fields = {**fields, "deprecated": True}
    return render_entry(fields, archive.path, archive.sha256, to_ms(version.published_at))


def splice(_name: str, form: str, _serial: int, members: Sequence[MemberParts]) -> Spliced:
    """The entries of a chart, the newest version first, as a JSON list."""
    return Spliced(b"[", merge_fragments(members, form)[::-1], b"]")


def render(listed: PackageList[Listed], serial: int, form: str) -> Document:
    """The index in ``form``: the path of the repository as its client knows it, or L{ENTRIES} alone. Blocks."""
    # helm's plugin for uploads finds the API of a repository by the path.
    head = b'{"apiVersion":"v1","serverInfo":%b,"entries":' % msgspec.json.encode({"contextPath": form})
    head, tail, kind = (b"", b"", "application/json") if form == ENTRIES else (head, b"}", TYPE)
    spliced = Spliced(head + b"{\n", listed.fragments(ENTRY, _charts), b"}" + tail, b",\n")
    return _renderer.render(spliced, "", content_type=kind, serial=serial, zstd=True, group_size=GROUP_SIZE)


def _charts(charts: Iterable[Listed]) -> bytes:
    found = ((name.encode(), b",\n".join(each.body for each in reversed(entries))) for name, entries in charts)
    return b",\n".join(b'"%b":[\n%b]' % each for each in found)

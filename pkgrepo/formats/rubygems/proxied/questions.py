"""The questions that are asked of upstream gem servers. The URL of a route is the one that clients have as source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from attrs import evolve

from pkgrepo.formats.rubygems.index.info import info_md5
from pkgrepo.proxy.documents.held import DocumentRequest, Growing, Listing

from .legacy_index import MOST_TTL_S, info_composition, versions_composition
from .listed_sums import confirms
from .normaliser import GZIP_NORMALISER, INFO_NORMALISER, TAIL_NORMALISER, VERSIONS_NORMALISER
from .pieces import read_pieces

_ANY: Final = "*/*"


def info_question(name: str) -> DocumentRequest:
    """The versions of a gem."""
    question = DocumentRequest(
        key=f"info/{name}",
        package_key=name,
        name=name,
        urls=lambda url: [f"{url}/info/{quote(name)}"],
        accept=_ANY,
        normaliser=INFO_NORMALISER,
        most_ttl_s=MOST_TTL_S,
        listing=Listing(versions_question(), confirms, info_md5([])),
    )
    return evolve(question, composition=info_composition(question))


def versions_question() -> DocumentRequest:
    """The list of all changes."""
    return DocumentRequest(
        key="versions",
        package_key="",
        name="list of versions",
        urls=lambda url: [f"{url}/versions"],
        accept=_ANY,
        normaliser=VERSIONS_NORMALISER,
        most_ttl_s=MOST_TTL_S,
        growing=Growing(TAIL_NORMALISER, read_pieces),
        composition=versions_composition(),
    )


def specs_question(file: str) -> DocumentRequest:
    """A list of the legacy index, by its file name."""
    return DocumentRequest(
        key=file,
        package_key="",
        name=file,
        urls=lambda url: [f"{url}/{file}"],
        accept=_ANY,
        normaliser=GZIP_NORMALISER,
    )


def gem_server_probes(url: str) -> Sequence[tuple[str, Sequence[int]]]:
    """See L{IProbedFormat.probes}. The body, which is large at some servers, is not read."""
    return [(f"{url}/versions", (200,)), (f"{url}/latest_specs.4.8.gz", (200,))]

"""
The questions that are asked of upstream indexes.

The URL of a route is that of the simple index, or the one above it: a URL that ends in ``simple`` (devpi: ``+simple``)
is used as it is, another one is asked with ``/simple/`` first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pkgrepo.proxy.documents.held import DocumentRequest

from .normaliser import LIST_NORMALISER, NORMALISER

# As pip asks: what HTML cannot express is lost.
ACCEPT: Final = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.1, text/html;q=0.01, */*;q=0.001"
)

_INDEXES: Final = ("simple", "+simple", "%2bsimple")


def page_question(project: str) -> DocumentRequest:
    """The page of a project, by its key."""
    return DocumentRequest(
        key=f"simple/{project}",
        package_key=project,
        name=project,
        urls=lambda url: [f"{index}{project}/" for index in _indexes(url)],
        accept=ACCEPT,
        normaliser=NORMALISER,
    )


def list_question() -> DocumentRequest:
    """The list of all projects."""
    return DocumentRequest(
        key="simple",
        package_key="",
        name="list of projects",
        urls=_indexes,
        accept=ACCEPT,
        normaliser=LIST_NORMALISER,
    )


def index_probes(url: str) -> Sequence[tuple[str, Sequence[int]]]:
    """See L{IProbedFormat.probes}. The body, which is large at some indexes, is not read."""
    return [(index, (200,)) for index in _indexes(url)]


def _indexes(url: str) -> Sequence[str]:
    """The URLs, with a slash at the end, at which the simple index of a route may be."""
    base = url.rstrip("/")
    if base.rpartition("/")[2].lower() in _INDEXES:
        return [f"{base}/"]
    return [f"{base}/simple/", f"{base}/"]

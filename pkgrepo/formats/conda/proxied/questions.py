"""The questions that are asked of upstream channels. The URL of a route is the one that clients have as channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import evolve

from pkgrepo.errors import NotFound
from pkgrepo.formats.conda.index.documents import REPODATA
from pkgrepo.formats.conda.names import NOARCH, SUBDIRS
from pkgrepo.proxy.documents.held import DocumentRequest

from .normaliser import CHANNELDATA_NORMALISER, EXPORTS_NORMALISER, REPODATA_NORMALISER, section_of

_ANY: Final = "*/*"
_ZST: Final = ".zst"


def repodata_question(subdir: str, document: str = REPODATA) -> DocumentRequest:
    """The records of a folder, or in another ``document`` some of them."""
    return _question(subdir, document, REPODATA_NORMALISER)


def exports_question(subdir: str, document: str) -> DocumentRequest:
    """The run exports of the files in a folder."""
    return _question(subdir, document, EXPORTS_NORMALISER)


def channeldata_question(document: str) -> DocumentRequest:
    """What a channel says of its packages."""
    return _question("", document, CHANNELDATA_NORMALISER)


def package_question(key: str) -> DocumentRequest:
    """
    The records of a package in a folder, by the key ``<subdir>/<name>``: a section of the records of the folder.

    :raises NotFound: no channel has such a folder
    """
    subdir, _, name = key.partition("/")
    if subdir not in SUBDIRS:
        raise NotFound("folder", subdir)
    return evolve(repodata_question(subdir), package_key=name, section=section_of(name))


def channel_probes(url: str) -> Sequence[tuple[str, Sequence[int]]]:
    """See L{IProbedFormat.probes}. The body is not read."""
    return [(f"{url}/{NOARCH}/{REPODATA}{ending}", (200,)) for ending in (_ZST, "")]


def _question(subdir: str, document: str, normaliser: str) -> DocumentRequest:
    path = f"{subdir}/{document}" if subdir else document
    return DocumentRequest(
        key=path,
        package_key="",
        name=subdir,
        urls=lambda url: [f"{url}/{path}{_ZST}", f"{url}/{path}"],
        accept=_ANY,
        normaliser=normaliser,
    )

"""
What is asked of upstream channels, how their files are kept, and what is restored of their documents from these.

The URL of a route is the one that clients have as channel. What the upstream serves is kept although an upload would
refuse it; then it has no texts about it. Its record is that of the upstream, which may have corrected what the package
says.

Documents are restored as far as its files are kept: with their records as the channel had them then.
``current_repodata.json`` has all of these records too, which are more than clients need. Every channel has the folder
``noarch``; others of which no file is kept are not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from attrs import evolve

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.conda.description import meta_of
from pkgrepo.formats.conda.index.documents import CHANNELDATA, CURRENT, REPODATA, RUN_EXPORTS
from pkgrepo.formats.conda.index.packages import PackageRecords, read_all
from pkgrepo.formats.conda.index.texts import CHANNELDATA_HEAD, EXPORTS_TAIL, TAIL, channeldata_entry, folder_head
from pkgrepo.formats.conda.names import CONDA, NOARCH, SUBDIRS, TAR_BZ2, FileName, parse_file_name, version_key
from pkgrepo.formats.conda.package_metadata import read_package
from pkgrepo.formats.conda.proxied.normaliser import (
    CHANNELDATA_NORMALISER,
    EXPORTS_NORMALISER,
    RECORD,
    REPODATA_NORMALISER,
    normalise_channeldata,
    normalise_exports,
    normalise_repodata,
)
from pkgrepo.formats.conda.versions import order_key
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, NewFile, Origin, Repository, RepositoryType
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.explaining import Explainer, Explanation, Outcome
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.parts.values import Context, Normalised, section_of
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.policy.facts import UNREADABLE
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files, packages, versions


async def make_release(file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of a file that was fetched from an upstream; see L{IProxiedFormat.make_release}."""
    name = parse_file_name(file.entry.key)
    record = msgspec.json.decode(file.entry.fragments[f"{RECORD}{name.ending}"])
    meta, exports = await staged.inspect(pools.cpu, blob, partial(_read, name=name))
    kept = NewFile(
        path=file.source.path,
        blob=blob,
        media_type=file.source.media_type,
        attrs={"index": record, "run_exports": exports, **({UNREADABLE: True} if meta is None else {})},
    )
    return Release(
        package_key=file.key,
        package_name=file.key,
        version_key=version_key(name.version),
        version_text=name.version,
        sort=order_key(name.version),
        files=(kept,),
        meta=meta or {},
    )


def read_own(content: int | bytes, path: str) -> Mapping[str, Any]:
    """The metadata in a package. :raises Invalid: they cannot be read"""
    return meta_of(read_package(content, parse_file_name(path.rpartition("/")[2])))


def _read(content: int | bytes, name: FileName) -> tuple[Mapping[str, Any] | None, Mapping[str, Any]]:
    """The metadata and run exports of a package; None, and no exports, if it cannot be read."""
    try:
        found = read_package(content, name)
    except Invalid:
        return None, {}
    return meta_of(found), found.exports


_PAGE: Final = 200  # packages that are read at once


def restore_documents(reader: Reader, repository_id: int) -> Iterator[tuple[DocumentRequest, Origin, Normalised]]:
    """The documents of all folders and of the channel, with the origin of the file of each that was fetched last."""
    origins = _origins(reader, repository_id)
    if not origins:
        return
    newest = max(origins.values(), key=lambda each: each.fetched_ms)
    kept = [package for _, package in read_all(reader, repository_id)]
    for subdir, origin in ({NOARCH: newest} | origins).items():
        found = [package.folders[subdir] for package in kept if subdir in package.folders]
        records = _folder(subdir, [each.records for each in found], TAIL)
        exports = _folder(subdir, [each.exports for each in found], EXPORTS_TAIL)
        context = Context(subdir, origin.url)  # of a file; addresses of others are relative to its folder
        yield repodata_question(subdir), origin, normalise_repodata(records, context)
        yield repodata_question(subdir, CURRENT), origin, normalise_repodata(records, context)
        yield exports_question(subdir, RUN_EXPORTS), origin, normalise_exports(exports, context)
    about = _channeldata(kept)
    yield channeldata_question(CHANNELDATA), newest, normalise_channeldata(about, Context("", newest.url))


def _origins(reader: Reader, repository_id: int) -> dict[str, Origin]:
    """The origin of the file that was fetched last, by folder."""
    found: dict[str, Origin] = {}
    after = ""
    while page := packages.list_packages(reader, repository_id, after=after, limit=_PAGE):
        for package in page:
            for version in versions.list_versions(reader, package.id):
                for file in files.files_of_version(reader, version.id):
                    subdir, origin = file.path.partition("/")[0], file.origin
                    if origin is not None and (subdir not in found or found[subdir].fetched_ms < origin.fetched_ms):
                        found[subdir] = origin
        after = page[-1].key
    return found


def _folder(subdir: str, texts: Sequence[Mapping[str, bytes]], tail: bytes) -> bytes:
    old, new = (b"".join(each[ending] for each in texts)[1:] for ending in (TAR_BZ2, CONDA))
    return b"".join((folder_head(subdir), old, b'},"packages.conda":{', new, tail))


def _channeldata(kept: Sequence[PackageRecords]) -> bytes:
    entries = b"".join(map(channeldata_entry, kept))[1:]
    subdirs = msgspec.json.encode(sorted({subdir for each in kept for subdir in each.folders}))
    return b"".join((CHANNELDATA_HEAD, entries, b'},"subdirs":', subdirs, b"}"))


async def explain_package(
    proxied: Proxied, services: Services, repository: Repository, name: str, version: str | None, *, revalidate: bool
) -> Explanation:
    """
    How a package, and one version of it if that is given, is served; with ``revalidate`` what is kept is confirmed.

    Of an upstream those folders are looked at that it was asked for, and noarch.

    :raises Invalid: the version is malformed
    """
    explainer = Explainer(
        catalog=services.catalog,
        clock=services.clock,
        pools=services.pools,
        resolver=services.proxy.resolver,
        files=services.proxy.package_files,
        formats={repository.format: proxied},
        version_keys={repository.format: version_key},
        in_turn=services.view_turns.make,
    )
    key = None if version is None else version_key(version)
    steps = []
    first: Explanation | None = None
    for subdir in await upstream_folders(services, repository):
        found = await explainer.explain(repository, f"{subdir}/{name}", version_key=key, revalidate=revalidate)
        steps += [each for each in found.steps if each not in steps]
        if found.outcome is Outcome.SERVED:
            return evolve(found, steps=steps)
        if first is None or first.outcome is Outcome.NOT_FOUND:
            first = found
    assert first is not None, "there is one folder at least"
    return evolve(first, steps=steps)


async def upstream_folders(services: Services, repository: Repository) -> list[str]:
    """The folders that upstreams of a repository were asked for, and noarch."""
    found = {NOARCH}
    for each in services.proxy.resolver.flat_members(repository):
        if each.type is RepositoryType.PROXY:
            for subdir in SUBDIRS:
                held = await services.proxy.documents.find(each, repodata_question(subdir).key)
                if held is not None and held.document.found:
                    found.add(subdir)
    return [each for each in SUBDIRS if each in found]


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
    """Requests that check an upstream. The body is not read."""
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

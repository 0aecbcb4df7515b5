"""
Charts and their provenance in, as ChartMuseum and other servers take them.

=================================================  ====================================================================
request                                            body
=================================================  ====================================================================
``POST api/charts``, ``POST api/prov``             an archive or provenance, or a form with ``chart`` and ``prov``
``PUT charts/<file>``, ``PUT <file>``              the file with this name
=================================================  ====================================================================

With ``?force`` a chart replaces another one, if the policy allows it. Provenance has the digest of its archive, which
must be there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from attrs import evolve

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.gateway.bodies import check_declared_length, read_body, receive_body
from pkgrepo.gateway.package_files import find_package_key
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import sent_file
from pkgrepo.gateway.services import Context
from pkgrepo.http.reading.multipart import MultipartLimits, read_form
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, BlobInfo, NewFile
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.publish_policy import publish_policy
from pkgrepo.storage.catalog.packages import files, versions

from .chart import MIB, meta_of, read_chart
from .entries import declared
from .index import CHART, index_chart
from .names import ARCHIVE_TYPE, PROVENANCE, PROVENANCE_TYPE, chart_path, file_place, sort_key

FORM_LIMITS: Final = MultipartLimits(parts=8, text_bytes=MIB)
# In the text that is signed (RFC 9580 section 7), after the chart's own description.
_LISTED: Final = re.compile(r"^ +(\S{1,300}): sha256:([0-9a-f]{64})$", re.MULTILINE)

_Sent = tuple[BlobInfo | None, bytes | None]  # an archive, and provenance; one of them at least


async def take_request(context: Context[Any], request: Request, *, provenance: bool, path: str = "") -> Uploaded:
    """
    Publish what a form has, or the body: ``provenance`` or an archive, which is to have the ``path`` if there is one.

    :raises Invalid: it is no chart or provenance, or another one; :raises FileExists: another one is published
    """
    identity = await context.admit(request, Action.WRITE)
    async with context.services.content.stage(context.repository, user_id=identity.user_id) as staged:
        archive, text, limit = None, None, context.services.max_upload
        content_type = request.header(b"content-type") or b""
        if content_type.lower().startswith(b"multipart/form-data"):
            check_declared_length(request, limit + 2 * MIB)
            async for part in read_form(request.body, content_type, FORM_LIMITS):
                if part.name == "chart" and archive is None:
                    archive = await staged.receive(part, limit=limit, expect_size=None)
                elif part.name == "prov" and text is None:
                    text = await part.read_bytes()
        elif provenance:
            text = await read_body(request, MIB)
        else:
            archive = await receive_body(request, staged, limit=limit)
        return await _publish(context, request, staged, (archive, text), path)


async def take_file(context: Context[Any], request: Request, sent: SentFile) -> Uploaded:
    """Publish a chart that is the file of a form; see ``pkgrepo.gateway.publishing.uploads``."""
    async with sent_file(context, request, sent) as (target, staged, archive):
        return await _publish(target, request, staged, (archive, None))


async def _publish(context: Context[Any], request: Request, staged: Staged, sent: _Sent, path: str = "") -> Uploaded:
    archive, provenance = sent
    services, repository = context.services, context.repository
    if archive is not None:
        look = partial(read_chart, filename=(path or "the file").rpartition("/")[2])
        release = make_release(await staged.inspect(services.pools.cpu, archive, look), archive)
        main, sha256 = release.files[0].path, archive.sha256
    elif provenance is not None:
        main = file_place(signed_file(provenance)[0])
        release, sha256 = await services.catalog.look(_release_beside, repository.id, main)
    else:
        raise Refusal(400, "the form has no part 'chart' or 'prov'", "bad_form")
    if provenance is not None:
        if signed_file(provenance) != (main.rpartition("/")[2], sha256):
            raise Invalid("the provenance is of another archive", "prov")
        beside = provenance_beside(main, await staged.store(provenance), release.package_key, release.version_text)
        release = evolve(release, files=(*release.files, *beside.files))
    if path not in ("", release.files[0].path):
        raise Invalid(f"it is not called so: it is {release.files[0].path.rpartition('/')[2]}")
    name, policy = release.package_key, publish_policy(repository)
    identity, admitted = await context.admit_publishing(request, name)  # again: the body may have taken hours
    overwrite = policy.allow_overwrite and re.search(rb"(^|&)force(=|&|$)", request.raw_query) is not None
    if overwrite and await services.access.authorizer.may(identity, Action.OVERWRITE, repository, name):
        obsolete = () if provenance is not None else (main + PROVENANCE,)
        release = evolve(release, overwrite=True, describes=archive is not None, obsolete=obsolete)
    ready = evolve(release, reuse=policy.reuse_deleted_names)
    published = await services.content.publish(repository, ready, staged, admitted, index_chart)
    return Uploaded(name, release.version_text, published.changed, main, sha256)


def make_release(fields: Mapping[str, Any], blob: BlobInfo) -> Release:
    """The release of a chart that has been inspected. :raises Invalid: its name would be too long"""
    name, version = fields["name"], fields["version"]
    file = NewFile(chart_path(name, version), blob, ARCHIVE_TYPE, {CHART: fields})
    return Release(name, name, version, version, sort_key(version), (file,), meta=meta_of(fields))


def provenance_beside(path: str, blob: BlobInfo, name: str, version: str) -> Release:
    """The release of the provenance of the archive at a path, of a version of a chart."""
    file = NewFile(path + PROVENANCE, blob, PROVENANCE_TYPE, {"role": PROVENANCE})
    return Release(name, name, version, version, sort_key(version), (file,), describes=False)


def signed_file(provenance: bytes) -> tuple[str, str]:
    """The name and the sha256 (hex) of the archive that provenance is of. :raises Invalid: it is none"""
    text = provenance.decode("utf-8", "replace").replace("\r\n", "\n")
    signed = text.startswith("-----BEGIN PGP SIGNED MESSAGE-----") and "\n-----BEGIN PGP SIGNATURE-----" in text
    found = _LISTED.search(text.rpartition("\n...\n")[2]) if signed else None
    if found is None:
        raise Invalid("provenance is a signed text with the digest of an archive, as helm writes it", "prov")
    return found[1], found[2]


def _release_beside(reader: Reader, repository_id: int, path: str) -> tuple[Release, str]:
    """The release, without files, of the version whose archive is at a path, and its sha256."""
    file, name = files.find_file(reader, repository_id, path), find_package_key(reader, repository_id, path)
    if file is None or name is None or file.version_id is None:
        raise Invalid(f"{path.rpartition('/')[2]} is not here: send the archive first, or in the same form", "prov")
    [version] = versions.versions_by_id(reader, [file.version_id])
    return Release(name, name, version.key, version.text, version.sort, (), describes=False), file.sha256


async def make_remote_release(file: RemoteFile, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """
    The release of a file that was fetched from an upstream, with the entry that the upstream has of it.

    :raises Invalid: it is no archive of this chart, which no digest of the index told
    """
    path, version = file.source.path, file.entry.version
    if path.endswith(PROVENANCE):
        return provenance_beside(path.removesuffix(PROVENANCE), blob, file.key, version)
    if not file.source.digests:
        inside = await staged.inspect(pools.cpu, blob, partial(read_chart, filename=path.rpartition("/")[2]))
        if (inside["name"], inside["version"]) != (file.key, version):
            raise Invalid(f"the archive is the chart {inside['name']} {inside['version']}")
    release = make_release(declared(file.entry.fragments), blob)
    return evolve(release, overwrite=True)  # the metadata of a version whose provenance was kept first

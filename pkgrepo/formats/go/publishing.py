"""Uploads of module zips: a zip is inspected, its ``.mod`` and ``.info`` are made, and all three are one release."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from pkgrepo.archives.module_zip import LARGEST_FILE, h1_of_mod
from pkgrepo.errors import Conflict, Invalid
from pkgrepo.formats.go.archive import Module, read_module
from pkgrepo.formats.go.index import index_module
from pkgrepo.formats.go.names import INFO, KINDS, Path, file_path, sort_key
from pkgrepo.formats.go.normaliser import read_info
from pkgrepo.gateway.bodies import read_body, receive_body
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import sent_file
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, json_response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, BlobInfo, NewFile, Repository
from pkgrepo.repositories.clock import format_time, from_ms
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files, versions


async def upload(context: Context[object], request: Request, path: Path) -> Response:
    """
    Publish the module zip in the body, at the path of its version, or at one that names none.

    The response is 200 if a zip with the same files is published.

    :raises Invalid: it is no module zip, or one of something else; :raises Conflict: other files are published
    """
    identity = await context.admit(request, Action.WRITE, path.module or None)
    async with context.services.content.stage(context.repository, user_id=identity.user_id) as staged:
        blob = await receive_body(request, staged, limit=context.services.max_upload)
        module, changed = await _publish(context, request, staged, blob, path)
    made = {"module": module.module, "version": module.version, "h1": module.h1, "h1_mod": h1_of_mod(module.go_mod)}
    return json_response(made, 201 if changed else 200)


async def compare(context: Context[object], request: Request, path: Path) -> Response:
    """
    Take the ``.mod`` or ``.info`` of a version whose zip is published, as other servers want them. It changes nothing.

    :raises Conflict: there is no zip, or its go.mod is another one; :raises Invalid: it is no ``.info`` of the version
    """
    await context.admit(request, Action.WRITE, path.module)
    sent, where = await read_body(request, LARGEST_FILE), file_path(path.module, path.version, "mod")
    kept = await context.services.catalog.look(files.find_file, context.repository.id, where)
    if kept is None:
        raise Conflict(f"publish the zip of {path.module}@{path.version} first: its .mod and .info are made of it")
    if path.kind == "mod" and sha256(sent).hexdigest() != kept.sha256:
        raise Conflict(f"the zip of {path.module}@{path.version} has another go.mod than this")
    if path.kind == INFO and (found := read_info(sent, path.module)[0]) != path.version:
        raise Invalid(f"this is the .info of {found}, and the address is that of {path.version}")
    return json_response({"module": path.module, "version": path.version})


async def take_file(context: Context[object], request: Request, sent: SentFile) -> Uploaded:
    """Publish a module zip that is the file of a form; see ``pkgrepo.gateway.publishing.uploads``."""
    async with sent_file(context, request, sent) as (target, staged, blob):
        module, changed = await _publish(target, request, staged, blob)
    path = file_path(module.module, module.version, "zip")
    return Uploaded(module.module, module.version, changed, path, blob.sha256)


async def _publish(
    context: Context[object], request: Request, staged: Staged, blob: BlobInfo, path: Path | None = None
) -> tuple[Module, bool]:
    services, repository = context.services, context.repository
    module = await staged.inspect(services.pools.cpu, blob, read_module)
    if path is not None and path.module and (path.module, path.version) != (module.module, module.version):
        raise Invalid(f"the zip is of {module.module}@{module.version}, and the address is not", "path")
    _, admitted = await context.admit_publishing(request, module.module)  # again: the body may have taken hours
    if await services.catalog.look(_published_h1, repository, module) == module.h1:
        return module, False  # zips of the same files may differ in their bytes
    info = info_of(module.version, services.clock.now_ms())
    release = await make_release(staged, blob, module, info, reuse=bool(repository.policy.get("reuse_deleted_names")))
    published = await services.content.publish(repository, release, staged, admitted, index_module)
    return module, published.changed


def _published_h1(reader: Reader, repository: Repository, module: Module) -> Any:
    """The hash of a version whose zip is published."""
    found = versions.find_by_keys(reader, repository.id, module.module, module.version)
    path = file_path(module.module, module.version, "zip")
    return found and files.find_file(reader, repository.id, path) and found.meta.get("h1")


def info_of(version: str, at_ms: int) -> bytes:
    """The ``.info`` of a version that was published at a time (ms)."""
    return msgspec.json.encode({"Version": version, "Time": format_time(from_ms(at_ms).replace(microsecond=0))})


async def make_release(staged: Staged, blob: BlobInfo, module: Module, info: bytes, **more: Any) -> Release:
    """The release of a staged zip, with its ``.mod`` and ``.info``; ``more`` are further fields."""
    blobs = {"zip": blob, "mod": await staged.store(module.go_mod), "info": await staged.store(info)}
    return release_of(module.module, module.version, blobs, meta=module.meta, **more)


def release_of(module: str, version: str, blobs: Mapping[str, BlobInfo], **more: Any) -> Release:
    """The release of the files of a version, by their kinds. What is beside the zip is judged as that."""
    return Release(
        package_key=module,
        package_name=module,
        version_key=version,
        version_text=version,
        sort=sort_key(version),
        files=tuple(
            NewFile(file_path(module, version, kind), blob, KINDS[kind], {} if kind == "zip" else {"role": kind})
            for kind, blob in blobs.items()
        ),
        **more,
    )

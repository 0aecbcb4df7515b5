"""
The routes to what a repository has beside packages: uploads that have not ended, and names of removed packages.

An upload is that of a blob of an image, which takes several requests.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Transaction
from pkgrepo.management.api.access_rules import CONTENT_READERS, EDITORS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import ObjectId, PackageName
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.model import Actor
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.publish.upload_leases import UploadLeases, UploadUnknown
from pkgrepo.storage.catalog.blobs.uploads import OpenUpload, list_open_uploads
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.deleted_names import DeletedName, list_deleted
from pkgrepo.storage.catalog.packages.events import append_event
from pkgrepo.storage.catalog.server import repositories

_LONGEST_ID: Final = 64  # characters

table = Table("repositories")


class UploadRecord(Record):
    """
    An upload that has not ended.

    Nothing is left of it at expires_at unless it is used.
    """

    id: ObjectId
    package: Annotated[str, meaning("The name of the image.")]
    user: Annotated[str | None, meaning("Who began it; null for anonymous callers.")]
    received: Annotated[int, meaning("How many bytes are stored.")]
    running: Annotated[bool, meaning("Whether a request is sending more bytes.")]
    created_at: Annotated[datetime, meaning("When it was begun.")]
    used_at: Annotated[datetime, meaning("When a request last used it.")]
    expires_at: Annotated[datetime, meaning("When it is removed unless it is used.")]


class CancelledUpload(Record):
    """The id of an upload that was removed with its bytes."""

    id: Annotated[str, meaning("The id of the upload that was removed.")]


@table.command(
    "repo uploads list STORAGE/REPOSITORY",
    columns="UPLOAD: id | IMAGE: package | USER: user or 'anonymous' | RECEIVED: received:size | "
    "LAST USE: used_at:ago | STATE: running:running/idle",
    nothing="there are no unfinished uploads",
    more="They expire a day after their last request.",
)
@table.get("/repository/<repository>/uploads", EDITORS, "List the uploads that have not ended")
async def list_uploads(call: Call) -> Page[UploadRecord]:
    """Those of container clients, which send a layer in several requests; they expire a day after the last one."""
    return await call.page(list_open_uploads, call.repository.id, call.now_ms, by=lambda each: each.uid, show=_record)


@table.command(
    "repo uploads cancel STORAGE/REPOSITORY UPLOAD",
    "cancelled upload {upload}",
    ask="Cancel the upload {upload}?",
    more="Its bytes are removed; one that a request is writing to is not cancelled.",
)
@table.delete("/repository/<repository>/uploads/<id>", EDITORS, "Cancel an upload", audit="upload.cancel")
async def cancel_upload(call: Call, id: str) -> CancelledUpload:
    """Its client is then told that there is no such upload. The answer is 409 while a request is writing to it."""
    repository = call.repository
    found = await call.catalog.scan(list_open_uploads, repository.id, call.now_ms, uid=id, limit=1)
    if not found:
        raise NotFound("upload", id[:_LONGEST_ID])
    call.object = f"{repository.path}/{found[0].package_key}"
    try:
        shared = call.shared
        leases = UploadLeases(shared.catalog, shared.clock)
        await shield(leases.cancel(id, shared.content.stage(repository)))
    except UploadUnknown:
        raise NotFound("upload", id) from None
    return CancelledUpload(id=id)


def _record(upload: OpenUpload) -> UploadRecord:
    return UploadRecord(
        id=upload.uid,
        package=upload.package_key,
        user=upload.username,
        received=upload.position,
        running=upload.leased,
        created_at=upload.created_at,
        used_at=upload.touched_at,
        expires_at=upload.expires_at,
    )


class RetiredNameRecord(Record):
    """The name (key) of a package that was removed. Virtual repositories around this one ask no upstream for it."""

    key: Annotated[str, meaning("The key of the package that was removed.")]
    retired_at: Annotated[datetime, meaning("When it was removed.")]


class DeletedNameRecord(Record):
    """A name that is taken by what was deleted: the path of a file of a package, and the digest of its bytes."""

    package: PackageName
    path: Annotated[str, meaning("The path of the file; empty for the name of the package itself.")]
    sha256: Annotated[str, meaning("The sha256 of the file's bytes, in hex; empty for the name of the package itself.")]
    deleted_at: Annotated[datetime, meaning("When it was deleted.")]


class Release(Body):
    """The name of a package that was removed here, and that upstreams may be asked for from now on."""

    package: Annotated[str, meaning("The name of the package that upstreams may be asked for from now on.")]


class Released(Record):
    """The key of the package whose name was released."""

    key: Annotated[str, meaning("The key of the package whose name was released.")]


@table.get(
    "/repository/<repository>/retired-names", EDITORS, "List the names of packages that were removed from a repository"
)
async def list_retired_names(call: Call) -> Page[RetiredNameRecord]:
    """Only names that no package has now. A proxy has those of the repository that it follows, if any."""
    return await call.page(
        packages.list_retired, call.repository.id, by=lambda each: each.key, show=RetiredNameRecord.from_attributes
    )


@table.get(
    "/repository/<repository>/deleted-names",
    CONTENT_READERS,
    "List the names that are taken by what was deleted from a repository",
    query=[Parameter("package", "Only those of this package.")],
)
async def list_deleted_names(call: Call) -> Page[DeletedNameRecord]:
    """Paths of files before names of packages, each in order. Servers that follow this repository read it."""
    package = call.query("package")
    key = call.format.package_key(package) if package else ""
    return await call.page(list_deleted, call.repository.id, by=lambda each: each.key, show=_deleted, package=key)


@table.post(
    "/repository/<repository>/retired-names/release",
    EDITORS,
    "Release the name of a package that was removed",
    audit="name.release",
)
async def release_name(call: Call, body: Release) -> Released:
    """From then on virtual repositories around this one ask upstreams for it, from any publisher."""
    key = call.format.package_key(body.package)
    await call.write(
        call.entry(f"{call.repository.path}/{key}"), _release, call.repository.id, key, call.actor, call.now_ms
    )
    return Released(key=key)


def _deleted(name: DeletedName) -> DeletedNameRecord:
    return DeletedNameRecord.from_attributes(name, package=name.package_key)


def _release(tx: Transaction, repository_id: int, key: str, actor: Actor, now_ms: int) -> None:
    """:raises NotFound: the name is not retired"""
    if not packages.release_name(tx, repository_id, key):
        raise NotFound("retired name", key)
    repositories.bump_names_serial(tx, repository_id)  # lists of virtual repositories show it from now on
    append_event(  # the readable layout forgets it, too
        tx,
        repository_id=repository_id,
        package_id=None,
        package_key=key,
        version_key="",
        kind="name_released",
        data={},
        actor=actor,
        now_ms=now_ms,
    )

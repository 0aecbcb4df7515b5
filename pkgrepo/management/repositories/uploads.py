"""The routes that publish a file of a form, and tell which files a repository takes in one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from pkgrepo.errors import AuthenticationRequired, NotFound, ReadOnly
from pkgrepo.gateway.publishing.uploads import FILE, Uploads, read_sent_file
from pkgrepo.gateway.services import Context
from pkgrepo.http.reading.multipart import Part
from pkgrepo.management.api.access_rules import CONTENT_READERS_OF_SOME
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import PackageName, VersionName
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Record
from pkgrepo.model import Action, Repository
from pkgrepo.model.structs import meaning
from pkgrepo.proxy.virtual import publish_target

table = Table("repositories")


class UploadFieldRecord(Record):
    """A text, or with file a small file, that a form may have before its file."""

    name: Annotated[str, meaning("The name of the field.")]
    label: Annotated[str, meaning("The name for people.")]
    needed: Annotated[bool, meaning("Whether the form must have it.")]
    file: Annotated[bool, meaning("Whether it is a small file, not a text.")]


class FolderRecord(Record):
    """A folder of which clients make a file for the form."""

    marker: Annotated[str, meaning("The name of a file that such a folder has.")]
    packing: Annotated[str, meaning("How clients make the file; empty if they do not.")]
    advice: Annotated[str, meaning("What to do with such a folder, if clients do not make a file of it.")]


class UploadFormRecord(Record):
    """The files that a repository takes in a form."""

    what: Annotated[str, meaning("What the form takes, in words.")]
    names: Annotated[
        dict[str, str], meaning("For each ending, a regular expression for the part of a file's name before it.")
    ]
    fields: Annotated[list[UploadFieldRecord], meaning("The fields that a form may have before its file.")]
    folders: Annotated[list[FolderRecord], meaning("The folders of which clients make a file for the form.")]
    limit: Annotated[int, meaning("The size of the largest file, in bytes.")]


class UploadedRecord(Record):
    """
    A version that a file was published as.

    Without changed the same bytes were published before.
    """

    package: PackageName
    version: VersionName
    changed: Annotated[bool, meaning("Whether something was published; false if the same bytes were there before.")]
    path: Annotated[str, meaning("The path of the file in the repository; empty for an archive of images.")]
    sha256: Annotated[str, meaning("The digest of the file in hex; empty for an archive of images.")]
    notes: Annotated[list[str], meaning("Sentences about consequences.")]


@table.get("/repository/<repository>/upload", CONTENT_READERS_OF_SOME, "Show which files can be uploaded in a form")
async def show_form(call: Call) -> UploadFormRecord:
    """It is for callers who may publish here; for others, and where no files are taken, it does not exist."""
    if not await takes_files(call, call.repository):
        raise NotFound("upload form of repository", call.repository.path)
    uploads = _uploads(call)
    return UploadFormRecord(
        what=uploads.what,
        names=dict(uploads.names),
        fields=[UploadFieldRecord.from_attributes(each) for each in uploads.fields],
        folders=[FolderRecord.from_attributes(each) for each in uploads.folders],
        limit=call.shared.max_upload,
    )


@table.post(
    "/repository/<repository>/upload",
    CONTENT_READERS_OF_SOME,
    "Publish a file that is sent in a form",
    audit="package.upload",
)
async def upload(call: Call, parts: AsyncIterator[Part]) -> UploadedRecord:
    """
    The file is published as a client of the format would publish it, with the same checks and rules.

    Fields, if the format has any, come before the file, and so may sha256, its digest in hex: a file of other bytes is
    refused.
    """
    uploads = _uploads(call)
    if call.identity.anonymous and not await takes_files(call, call.repository):
        raise AuthenticationRequired  # before a byte of the form is read; what others may do depends on the package
    sent = await read_sent_file(call.request, parts, call.shared.max_upload)
    context = Context(call.shared, call.repository, uploads.caches)
    done = await uploads.take(context, call.request, sent)
    call.object = f"{call.repository.path}/{done.package}@{done.version}"
    return UploadedRecord.from_attributes(done, notes=list(call.request.notes))


async def takes_files(call: Call, repository: Repository) -> bool:
    """Whether the caller may publish files to a repository in a form."""
    if call.services.formats[repository.format].uploads is None:
        return False
    try:
        target = publish_target(call.registry, repository)
    except ReadOnly:
        return False
    return target.active and await call.may(Action.WRITE, target)


def _uploads(call: Call) -> Uploads:
    uploads = call.format.uploads
    if uploads is None:
        raise NotFound(f"part named {FILE!r} of repositories of format", call.format.name)
    return uploads

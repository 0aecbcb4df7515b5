"""
Uploads: a distribution is received, verified and published as a release.

The metadata inside the file decides. The fields of the form are only compared with it, so that nothing else is
published by mistake.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from packaging.version import Version

from pkgrepo.errors import Conflict, DigestMismatch, FileExists, Invalid
from pkgrepo.formats.python.index.indexing import index_project
from pkgrepo.formats.python.names import (
    COMPANIONS,
    LONGEST_FILENAME,
    METADATA,
    PROVENANCE,
    PROVENANCE_TYPE,
    SIGNATURE,
    FileName,
    file_path,
    parse_upload,
    project_key,
)
from pkgrepo.formats.python.refusals import misplaced
from pkgrepo.formats.python.upload.inspection import Inspection, inspect
from pkgrepo.formats.python.versions import version_key
from pkgrepo.gateway.bodies import check_declared_length, receive_body
from pkgrepo.gateway.publishing.quotas import note_quotas
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response, text_response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, BlobInfo, File, NewFile, Pipeline
from pkgrepo.repositories.publish.releases import Published, Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files, versions

from .form import DIGEST_FIELDS, TEXT_BUDGET, Distribution, UploadForm, receive_form
from .metadata import CoreMetadata, meta_json
from .provenance import provenance_document

FORM_OVERHEAD = TEXT_BUDGET + 2 * 1024 * 1024  # bytes that a form may have besides its file


async def upload_form(context: Context[object], request: Request) -> Response:
    """The legacy upload form."""
    return await _upload_form(context, request, None)


async def upload_form_of(context: Context[object], request: Request, project: str) -> Response:
    """The legacy upload form, at a project's address."""
    return await _upload_form(context, request, project_key(project))


async def upload_file(
    context: Context[object], request: Request, project: str, version: str, filename: str
) -> Response:
    """A distribution as the whole body."""
    key, limit = project_key(project), context.services.max_upload
    identity = await context.admit(request, Action.WRITE, key)
    await note_quotas(context.services, context.repository, request)
    try:
        name = parse_upload(filename, project=project, strict=_is_strict(context))
    except Invalid as error:
        if media_type(request) != "multipart/form-data":
            raise
        # A form at an address such as ``api/v1/upload``.
        raise misplaced(context, request, Refusal(400, str(error), "invalid")) from None
    if name.project_key != key:
        raise Invalid(f"{name.filename} does not belong to project {key}", "name")
    if name.version_key != version_key(version):
        raise Invalid(f"{name.filename} does not belong to version {version}", "version")
    check_declared_length(request, limit)
    async with context.services.content.stage(context.repository, key, user_id=identity.user_id) as staged:
        blob = await receive_body(request, staged, limit=limit)
        published = await _accept(context, request, staged, Distribution(filename=name, blob=blob))
    return text_response("stored\n" if published.changed else "unchanged\n", 201 if published.changed else 200)


async def take_file(context: Context[object], request: Request, sent: SentFile) -> Uploaded:
    """Publish a distribution that is the file of a form; see ``pkgrepo.gateway.publishing.uploads``."""
    context = await publish_context(context, request)
    name = parse_upload(sent.name, project=sent.text("project") or None, strict=_is_strict(context))
    identity = await context.admit(request, Action.WRITE, name.project_key)
    async with context.services.content.stage(context.repository, name.project_key, user_id=identity.user_id) as staged:
        blob = await sent.receive(staged)
        published = await _accept(context, request, staged, Distribution(filename=name, blob=blob))
    return Uploaded(name.project_key, name.version_text, published.changed, published.files[0].path, blob.sha256)


async def refuse_upload(context: Context[object], request: Request, **_: str) -> Response:
    """A common mistake: uploading to the index address that installers use."""
    await context.admit(request, Action.WRITE)
    headers = ((b"Allow", b"GET, HEAD"),)
    refusal = Refusal(405, "installers read this address", "method_not_allowed", headers=headers)
    raise misplaced(context, request, refusal)


async def _upload_form(context: Context[object], request: Request, project: str | None) -> Response:
    services = context.services
    identity = await context.admit(request, Action.WRITE, project)
    await note_quotas(services, context.repository, request)
    check_declared_length(request, services.max_upload + FORM_OVERHEAD)

    async def admit(key: str) -> None:
        if project is not None and key != project:
            raise Invalid(f"this is not a file of project {project}", "name")
        await services.access.require(identity, Action.WRITE, context.repository, key)

    async with services.content.stage(context.repository, project, user_id=identity.user_id) as staged:
        upload = await receive_form(
            request, staged, limit=services.max_upload, project=project, strict=_is_strict(context), admit=admit
        )
        await _accept(context, request, staged, upload)
    return text_response("", 200)


async def _accept(context: Context[object], request: Request, staged: Staged, upload: Distribution) -> Published:
    """
    Verify a staged distribution and publish it.

    An existing file is replaced only if the caller may overwrite and the repository's policy allows it.

    :raises Invalid: the file or the form is not valid; :raises DigestMismatch: a digest in the form differs
    :raises FileExists: the name has other content; :raises FileBurned: a file of this name was deleted
    """
    services, repository, name = context.services, context.repository, upload.filename
    identity, admitted = await context.admit_publishing(request, name.project_key)  # the body may have taken hours
    may_overwrite = await services.access.authorizer.may(identity, Action.OVERWRITE, repository, name.project_key)
    if upload.form is not None:
        _check_digests(upload.form, upload.blob)
    inspected = await staged.inspect(services.pools.cpu, upload.blob, partial(inspect, filename=name))
    text, path, found = await services.catalog.look(_find_present, repository.id, name, inspected.metadata)
    if upload.form is not None:
        upload.form.check(name, inspected.metadata)
    attrs, companions = await _accompany(staged, upload, inspected, path, identity.pipeline)
    accompanying = {each.path for each in companions}
    obsolete = tuple(path + suffix for suffix in COMPANIONS if path + suffix not in accompanying)
    overwrite = may_overwrite and bool(repository.policy.get("allow_overwrite", False))
    if found is not None and found.sha256 == upload.blob.sha256:
        # Uploading the same file again changes nothing, also not its companions.
        companions, obsolete = [], ()
    elif found is not None and not overwrite:
        raise FileExists(name.filename, found.sha256)
    release = Release(
        package_key=name.project_key,
        package_name=inspected.metadata.name,
        version_key=name.version_key,
        version_text=text,
        sort=name.version_sort,
        files=(NewFile(path=path, blob=upload.blob, attrs=attrs), *companions),
        meta=meta_json(inspected.metadata),
        overwrite=overwrite,
        reuse=bool(repository.policy.get("reuse_deleted_names", False)),
        obsolete=obsolete if overwrite else (),
        guard=partial(
            check_spelling,
            repository_id=repository.id,
            project=name.project_key,
            version_key=name.version_key,
            text=text,
        ),
    )
    return await services.content.publish(repository, release, staged, admitted, index_project)


async def _accompany(
    staged: Staged, upload: Distribution, inspected: Inspection, path: str, pipeline: Pipeline | None
) -> tuple[dict[str, Any], list[NewFile]]:
    """What the index says of the file besides its name, and the files that lie beside it; ``pipeline`` uploads it."""
    name, form = upload.filename, upload.form
    attrs: dict[str, Any] = {
        "packagetype": name.kind,
        "python_version": name.python_version,
        "requires_python": inspected.metadata.requires_python,
    }
    companions: list[NewFile] = []

    def accompany(suffix: str, blob: BlobInfo, **more: Any) -> None:
        companions.append(NewFile(path=path + suffix, blob=blob, attrs={"role": suffix}, **more))

    if form is not None and form.comment:
        attrs["comment"] = form.comment
    if name.kind == "bdist_wheel":
        metadata = await staged.store(inspected.metadata_bytes)
        attrs["core_metadata"] = metadata.sha256
        accompany(METADATA, metadata)
    if upload.signature is not None:
        attrs["signature"] = True
        accompany(SIGNATURE, upload.signature)
    if form is not None and form.attestations:
        document = provenance_document(form.attestations, name.filename, upload.blob.sha256, pipeline=pipeline)
        provenance = await staged.store(document)
        attrs["provenance"] = True
        accompany(PROVENANCE, provenance, media_type=PROVENANCE_TYPE)
    return attrs, companions


def media_type(request: Request) -> str:
    """The media type of a request's body, without parameters."""
    return (request.header(b"content-type") or b"").partition(b";")[0].strip().lower().decode("latin-1")


def _is_strict(context: Context[object]) -> bool:
    """Whether only normalised file names are accepted (PEP 625)."""
    return bool(context.repository.policy.get("strict_filenames", False))


def _spelling(name: FileName, metadata: CoreMetadata) -> str:
    """The version as its author wrote it, unless the name of its sidecar file would be too long: then normalised."""
    text = metadata.version
    if len(f"{name.project_key}-{text}.json") <= LONGEST_FILENAME:
        return text
    return str(Version(name.version_text))


def _find_present(
    reader: Reader, repository_id: int, name: FileName, metadata: CoreMetadata
) -> tuple[str, str, File | None]:
    """The text of the version, the path of the file, and the file that is there now."""
    first = versions.find_by_keys(reader, repository_id, name.project_key, name.version_key)
    # The spelling of the version is that of the file that was published first.
    text = _spelling(name, metadata) if first is None else first.text
    path = file_path(name.project_key, text, name.filename)
    return text, path, files.find_file(reader, repository_id, path)


def _check_digests(form: UploadForm, blob: BlobInfo) -> None:
    for field, algorithm in {"sha256_digest": "sha256", **DIGEST_FIELDS}.items():
        announced = form.digests.get(field)
        actual = blob.digests.get(algorithm)
        if announced and actual and announced.lower() != actual:
            raise DigestMismatch(algorithm, announced.lower(), actual)


def check_spelling(reader: Reader, repository_id: int, project: str, version_key: str, text: str) -> None:
    """
    Check, inside the transaction, that the version is still spelled as the new paths assume.

    :raises Conflict: a concurrent upload published the version in another spelling
    """
    found = versions.find_by_keys(reader, repository_id, project, version_key)
    if found is not None and found.text != text:
        raise Conflict(f"version {text} of {project} was published as {found.text} a moment ago; upload the file again")

"""
Publishes an uploaded distribution as a release.

The metadata inside the file decides. The fields of the form are only compared with it, so that nobody publishes
something else by mistake.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from packaging.version import Version

from pkgrepo import model
from pkgrepo.errors import Conflict, DigestMismatch, FileExists, existing
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
)
from pkgrepo.formats.python.upload.inspection import Inspection, inspect
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import Actor, BlobInfo, File, NewFile, Repository
from pkgrepo.repositories.publish.releases import Published, Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import files, packages, versions

from .form import DIGEST_FIELDS, Distribution, UploadForm
from .metadata import CoreMetadata, meta_json
from .provenance import provenance_document


class Uploads:
    """Publishes distributions in one hosted repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    @property
    def strict(self) -> bool:
        """Whether only normalised file names are accepted (PEP 625)."""
        return bool(self._repository.policy.get("strict_filenames", False))

    async def accept(self, staged: Staged, upload: Distribution, actor: Actor, *, may_overwrite: bool) -> Published:
        """
        Verify a staged distribution and publish it.

        An existing file is replaced only if the caller ``may_overwrite`` and the repository's policy allows it.

        :raises Invalid: the file or the form is not valid; :raises DigestMismatch: a digest in the form differs
        :raises FileExists: the name has other content; :raises FileBurned: a file of this name was deleted
        """
        if upload.form is not None:
            _check_digests(upload.form, upload.blob)
        look = partial(inspect, filename=upload.filename)
        inspected = await staged.inspect(self._services.pools.cpu, upload.blob, look)
        name = upload.filename
        text = await self._version_text(name, inspected.metadata)
        path = file_path(name.project_key, text, name.filename)
        if upload.form is not None:
            upload.form.check(name, inspected.metadata)
        attrs, companions = await self._accompany(staged, upload, inspected, path)
        accompanying = {each.path for each in companions}
        obsolete = tuple(path + suffix for suffix in COMPANIONS if path + suffix not in accompanying)
        overwrite = may_overwrite and bool(self._repository.policy.get("allow_overwrite", False))
        found = await self.find(path)
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
            reuse=bool(self._repository.policy.get("reuse_deleted_names", False)),
            obsolete=obsolete if overwrite else (),
            guard=partial(
                check_spelling,
                repository_id=self._repository.id,
                project=name.project_key,
                version_key=name.version_key,
                text=text,
            ),
        )
        return await self._services.publisher.publish(self._repository, release, staged, actor, index_project)

    @staticmethod
    async def _accompany(
        staged: Staged, upload: Distribution, inspected: Inspection, path: str
    ) -> tuple[dict[str, Any], list[NewFile]]:
        """What the index says of the file besides its name, and the files that lie beside it."""
        name, form = upload.filename, upload.form
        attrs: dict[str, Any] = {
            "packagetype": name.kind,
            "python_version": name.python_version,
            "requires_python": inspected.metadata.requires_python,
        }
        companions: list[NewFile] = []
        if form is not None and form.comment:
            attrs["comment"] = form.comment
        if name.kind == "bdist_wheel":
            blob = await staged.store(inspected.metadata_bytes)
            attrs["core_metadata"] = blob.sha256
            companions.append(NewFile(path=path + METADATA, blob=blob, attrs={"role": METADATA}))
        if upload.signature is not None:
            attrs["signature"] = True
            companions.append(NewFile(path=path + SIGNATURE, blob=upload.signature, attrs={"role": SIGNATURE}))
        if form is not None and form.attestations:
            blob = await staged.store(provenance_document(form.attestations, name.filename, upload.blob.sha256))
            attrs["provenance"] = True
            companions.append(
                NewFile(path=path + PROVENANCE, blob=blob, media_type=PROVENANCE_TYPE, attrs={"role": PROVENANCE})
            )
        return attrs, companions

    async def _version_text(self, name: FileName, metadata: CoreMetadata) -> str:
        """The spelling of the version: that of the file that was published first."""
        found = await self._services.catalog.look(find_version, self._repository.id, name.project_key, name.version_key)
        return _spelling(name, metadata) if found is None else found.text

    async def find(self, path: str) -> File | None:
        """The stored file at a path of this repository."""
        return await self._services.catalog.look(files.find_file, self._repository.id, path)

    async def get(self, path: str) -> File:
        """The stored file at a path. :raises NotFound: there is none"""
        return existing(await self.find(path), "file", path.rsplit("/", 1)[-1])


def _spelling(name: FileName, metadata: CoreMetadata) -> str:
    """The version as its author wrote it, unless the name of its sidecar file would be too long: then normalised."""
    text = metadata.version
    if len(f"{name.project_key}-{text}.json") <= LONGEST_FILENAME:
        return text
    return str(Version(name.version_text))


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
    found = find_version(reader, repository_id, project, version_key)
    if found is not None and found.text != text:
        raise Conflict(f"version {text} of {project} was published as {found.text} a moment ago; upload the file again")


def find_version(reader: Reader, repository_id: int, project: str, version_key: str) -> model.Version | None:
    """A version of a project by their keys, or None."""
    package = packages.find_package(reader, repository_id, project)
    return None if package is None else versions.find_version(reader, package.id, version_key)

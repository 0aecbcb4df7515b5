"""
Publishes a version: verifies the sent document against the tarball, and stores the release.

The document around a tarball is a claim of the client. The digests that the registry serves are computed from the
bytes, and the manifest is compared with the package.json in the tarball.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pkgrepo.errors import DigestMismatch, Invalid
from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.configuration import policy_of
from pkgrepo.formats.npm.indexing import Publishing
from pkgrepo.formats.npm.layout import BUNDLE_ROLE, bundle_path, tarball_path
from pkgrepo.formats.npm.packument.document import revision
from pkgrepo.formats.npm.refusals import version_taken
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, json_answer
from pkgrepo.interfaces import Reader
from pkgrepo.model import Actor, BlobInfo, Identity, NewFile, Repository
from pkgrepo.repositories.publish.publisher import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import packages, tombstones, versions
from pkgrepo.storage.catalog.people import identity as users

from . import manifest as manifests
from . import tarball
from .envelope import Publication
from .provenance import read_bundle


class PublishRequests:
    """Publishes versions into one hosted repository; the caller was authorized before."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def publish(
        self, staged: Staged, publication: Publication, blob: BlobInfo, identity: Identity, actor: Actor
    ) -> Answer:
        """
        Verify a version whose tarball is staged, and publish it.

        :raises Invalid: the document, the tarball or the bundle is refused
        :raises Forbidden: the version exists, or was removed
        """
        catalog, repository = self._services.catalog, self._repository
        name, version = publication.name, publication.version
        # Checked before the work, and again in the transaction: another publish may come first.
        reuse = policy_of(repository).reuse_deleted_names
        free = partial(check_free, repository_id=repository.id, name=name, version=version, reuse=reuse)
        catalog.look_inline(free)
        try:
            manifests.check_announced(publication.manifest, blob.digests)
        except DigestMismatch as error:
            raise Invalid(f"integrity mismatch: {error}", "dist") from None
        look = partial(self._inspect, publication)
        packed, cleaned = await staged.inspect(self._services.pools.cpu, blob, look, alone=True)
        tarball_file = NewFile(path=tarball_path(name, version.text), blob=blob)
        new_files: tuple[NewFile, ...] = (tarball_file,)
        provenance = None
        if publication.bundle is not None:
            attested = read_bundle(publication.bundle, name, version, blob.digests["sha512"])
            provenance = {"predicateType": attested.predicate_type}
            bundle = NewFile(
                path=bundle_path(name, version.text),
                blob=await staged.store(attested.text),
                media_type="application/json",
                attrs={"role": BUNDLE_ROLE, "predicate_type": attested.predicate_type},
            )
            new_files = (tarball_file, bundle)
        person = self._person(identity)
        meta: dict[str, Any] = {
            **cleaned.manifest,
            "_npmUser": person,
            "maintainers": [person],
            "dist": manifests.make_dist(blob.digests, packed, provenance=provenance),
            "readme": cleaned.readme,
            "readmeFilename": cleaned.readme_filename,
        }
        release = Release(
            package_key=name,
            package_name=name,
            version_key=version.key,
            version_text=version.text,
            sort=version.sort,
            files=new_files,
            meta=meta,
            reuse=reuse,
            guard=free,
        )
        publishing = Publishing(tags=publication.tags, deprecated=cleaned.deprecated, maintainer=person, actor=actor)
        published = await self._services.publisher.publish(repository, release, staged, actor, publishing)
        return json_answer({"ok": True, "id": name, "rev": revision(name, published.serial), "success": True}, 201)

    def _inspect(
        self, publication: Publication, file: int | bytes
    ) -> tuple[tarball.TarballContents, manifests.CleanManifest]:
        """The contents of the tarball, and the manifest to be stored. Call it in a thread."""
        name, version = publication.name, publication.version
        packed = tarball.inspect(file, publication.filename, name, version)
        sent = self._reconciled(publication, packed)
        return packed, manifests.clean(sent, name=name, version=version, packed=packed)

    def _reconciled(self, publication: Publication, packed: tarball.TarballContents) -> Mapping[str, Any]:
        """The sent manifest, with the tarball's values in the fields that decide which code runs."""
        differing = tarball.differing_fields(publication.manifest, packed)
        if not differing:
            return publication.manifest
        if policy_of(self._repository).manifest_mismatch == "refuse":
            raise Invalid(
                f"the manifest of {publication.name}@{publication.version.text} has other {' and '.join(differing)} "
                "than the package.json in its tarball (policy.manifest_mismatch)",
                "versions",
            )
        kept = {key: value for key, value in publication.manifest.items() if key not in differing}
        taken = {key: packed.manifest[key] for key in differing if key in packed.manifest}
        if isinstance(taken.get("bin"), str):
            taken["bin"] = {publication.name.rpartition("/")[2]: taken["bin"]}
        return {**kept, **taken}

    def _person(self, identity: Identity) -> dict[str, str]:
        user = None
        if identity.user_id is not None:
            user = self._services.catalog.look_inline(users.find_user, identity.user_id)
        return {"name": identity.username, "email": "" if user is None else user.email}


def check_free(reader: Reader, repository_id: int, name: str, version: semver.Version, *, reuse: bool) -> None:
    """
    Check that a version does not exist, and was not removed unless ``reuse`` is on.

    Versions that differ in build metadata alone are the same version, also among the removed ones.

    :raises Forbidden: the version exists, or was removed and may not be published again
    """
    package = packages.find_package(reader, repository_id, name)
    if package is not None:
        found = versions.find_version(reader, package.id, version.key)
        if found is not None:
            raise version_taken(found.text)
    if reuse:
        return
    path = tarball_path(name, version.key)
    if tombstones.is_burned(reader, repository_id, path):
        raise version_taken(version.key)
    with_build = tombstones.burned_below(
        reader, repository_id, tarball_path(name, f"{version.key}+").removesuffix(".tgz"), 1
    )
    if with_build:
        raise version_taken(version.text)

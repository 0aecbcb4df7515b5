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
from pkgrepo.formats.npm.configuration import policy_of
from pkgrepo.formats.npm.indexing import Publishing
from pkgrepo.formats.npm.packument.document import revision
from pkgrepo.formats.npm.paths import BUNDLE_ROLE, bundle_path, tarball_path
from pkgrepo.formats.npm.publish.envelope import read_bundle
from pkgrepo.formats.npm.refusals import version_taken
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, json_response
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, Identity, NewFile
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.semver import Version
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.people import users

from .envelope import Publication
from .manifest import StoredManifest, check_announced, clean_manifest, make_dist, with_packed_fields
from .tarball import TarballContents, differing_fields, inspect_tarball


async def publish(
    context: Context[object],
    request: Request,
    staged: Staged,
    publication: Publication,
    blob: BlobInfo,
    identity: Identity,
    actor: Admitted,
) -> Response:
    """
    Verify a version whose tarball is staged, and publish it.

    :raises Invalid, Forbidden: see L{make_release}
    """
    release, publishing = await make_release(context, request, staged, publication, blob, identity, actor)
    published = await context.services.content.publish(context.repository, release, staged, actor, publishing)
    rev = revision(publication.name, published.serial)
    return json_response({"ok": True, "id": publication.name, "rev": rev, "success": True}, 201)


async def make_release(
    context: Context[object],
    request: Request,
    staged: Staged,
    publication: Publication,
    blob: BlobInfo,
    identity: Identity,
    actor: Admitted,
) -> tuple[Release, Publishing]:
    """
    Verify a version whose tarball is staged. Returns its release, which the repository can take, and its indexer.

    :raises Invalid: the document, the tarball or the bundle is refused
    :raises Forbidden: the version exists, or was removed
    """
    if publication.restricted and not context.repository.is_private:
        # No refusal: yarn 2 to 4 send it for every scoped package whose manifest does not say "public".
        request.notes += (f"the package is public, as {context.repository.path} is: its visibility decides",)
    catalog, repository = context.services.catalog, context.repository
    name, version = publication.name, publication.version
    policy = policy_of(repository)
    reuse = policy.reuse_deleted_names
    free = partial(check_free, repository_id=repository.id, name=name, version=version, reuse=reuse)
    # Checked before the work, and again in the transaction: another publish may come first.
    await catalog.look(free)
    try:
        check_announced(publication.manifest, blob.digests)
    except DigestMismatch as error:
        raise Invalid(f"integrity mismatch: {error}", "dist") from None
    inspect = partial(_inspect, publication, refuse_mismatch=policy.manifest_mismatch == "refuse")
    contents, manifest = await staged.inspect(context.services.pools.cpu, blob, inspect, alone=True)
    files, provenance = [NewFile(path=tarball_path(name, version.text), blob=blob)], None
    if publication.bundle is not None:
        attestation = read_bundle(publication.bundle, name, version, blob.digests["sha512"], identity.pipeline)
        provenance = {"predicateType": attestation.predicate_type}
        bundle = NewFile(
            path=bundle_path(name, version.text),
            blob=await staged.store(attestation.text),
            media_type="application/json",
            attrs={"role": BUNDLE_ROLE, "predicate_type": attestation.predicate_type},
        )
        files.append(bundle)
    person = await _person(context, identity)
    trusted = _trusted_publisher(context, identity)
    meta: dict[str, Any] = {
        **manifest.fields,
        "_npmUser": person if trusted is None else {**person, "trustedPublisher": trusted},
        "maintainers": [person],
        "dist": make_dist(blob.digests, contents, provenance=provenance),
        "readme": manifest.readme,
        "readmeFilename": manifest.readme_filename,
    }
    release = Release(
        package_key=name,
        package_name=name,
        version_key=version.key,
        version_text=version.text,
        sort=version.sort,
        files=tuple(files),
        meta=meta,
        reuse=reuse,
        note={"tagged": list(publication.tags)},
        guard=free,
    )
    publishing = Publishing(tags=publication.tags, deprecated=manifest.deprecated, maintainer=person, actor=actor)
    return release, publishing


async def _person(context: Context[object], identity: Identity) -> dict[str, str]:
    user = None
    if identity.user_id is not None:
        user = await context.services.catalog.look(users.find_user, identity.user_id)
    return {"name": identity.username, "email": "" if user is None else user.email}


def _trusted_publisher(context: Context[object], identity: Identity) -> dict[str, str] | None:
    """What clients read to know that a pipeline published without a stored token, such as pnpm for its trustPolicy."""
    pipeline = identity.pipeline
    if pipeline is None:
        return None
    issuer = context.services.pipelines.issuers.find(pipeline.issuer)
    recognised = min(pipeline.publishers | pipeline.projects, default="")
    return {"id": (issuer.kind if issuer else "") or pipeline.issuer, "oidcConfigId": f"oidc:{recognised}"}


def approved(meta: Mapping[str, Any], person: Mapping[str, str]) -> Mapping[str, Any]:
    """The metadata of a version of a stage that a person has approved: ``_npmUser`` stays the one who published it."""
    return {**meta, "_npmUser": {**meta.get("_npmUser", {}), "approver": dict(person)}}


def _inspect(
    publication: Publication, file: int | bytes, *, refuse_mismatch: bool
) -> tuple[TarballContents, StoredManifest]:
    """The contents of the tarball, and the manifest to be stored. Call it in a thread."""
    name, version = publication.name, publication.version
    contents = inspect_tarball(file, publication.filename, name, version)
    sent = publication.manifest
    differing = differing_fields(sent, contents)
    if differing and refuse_mismatch:
        raise Invalid(
            f"the manifest of {name}@{version.text} has other {' and '.join(differing)} "
            "than the package.json in its tarball (policy.manifest_mismatch)",
            "versions",
        )
    sent = with_packed_fields(sent, contents, differing, name)
    return contents, clean_manifest(sent, name=name, version=version, contents=contents)


def check_free(reader: Reader, repository_id: int, name: str, version: Version, *, reuse: bool) -> None:
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
    if files.has_tombstone(reader, repository_id, path):
        raise version_taken(version.key)
    with_build = files.tombstone_paths(
        reader, repository_id, tarball_path(name, f"{version.key}+").removesuffix(".tgz"), 1
    )
    if with_build:
        raise version_taken(version.text)

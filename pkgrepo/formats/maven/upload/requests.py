"""
Answers PUT: files of artifacts, plain files, metadata and checksums.

=========  ============================================================================================================
step       what happens
=========  ============================================================================================================
head       caller and push rules are checked, and that nothing else is at the path; a client that waits for
           ``100 Continue`` gets a refusal instead, and sends no body
body       it streams into a staged blob, with all digests that are served as checksums; announced ones are compared
POM        it is read, so that a malformed one is refused, and describes its version
again      caller and rules, since the body may have taken hours
publish    one transaction: rules that depend on what is there, checksums that came first, file, version, documents
plugin     when POM and jar of a plugin are there, its prefix is added to the metadata of the group
=========  ============================================================================================================
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Any

from attrs import frozen

from pkgrepo.errors import Conflict, DigestMismatch, FileBurned, FileExists, Forbidden, Invalid, PkgrepoError, existing
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.configuration import CHECKSUM_SIZE
from pkgrepo.formats.maven.files import present_file
from pkgrepo.formats.maven.metadata.joining import index_artifact
from pkgrepo.formats.maven.metadata.plugins import (
    PACKAGING,
    PluginChange,
    artifacts_of_changes,
    change_plugins,
    find_plugin,
    group_metadata,
    usual_plugin,
)
from pkgrepo.formats.maven.metadata.reading import LARGEST, Plugin, ReadMetadata
from pkgrepo.formats.maven.metadata.uploads import store_metadata
from pkgrepo.formats.maven.paths import (
    ALGORITHMS,
    ArtifactFile,
    Checksum,
    FilePath,
    Metadata,
    PlainFile,
    media_type,
    parse_text,
)
from pkgrepo.formats.maven.push_rules import PushPermit, check_plugins, check_push
from pkgrepo.formats.maven.upload.jar import FACTS, read_inner_pom, read_jar
from pkgrepo.formats.maven.upload.pom import POM_SIZE, Pom, read_pom, read_pom_file
from pkgrepo.formats.maven.upload.release import make_release, new_file
from pkgrepo.gateway.bodies import check_preconditions, receive_body
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.digest_fields import parse_checksum, read_digests
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, Actor, BlobInfo, Extent, File, Identity, NewFile, Repository
from pkgrepo.repositories.publish.releases import Published
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import checksum_claims, events, files, packages, versions
from pkgrepo.storage.catalog.packages.files import has_tombstone
from pkgrepo.storage.catalog.packages.summaries import package_and_version_of_file
from pkgrepo.storage.catalog.packages.tree import check_place

POMS = (".pom", ".xml")  # endings of files that are POMs, where nothing else says what they are


@frozen
class Push:
    """A push that was accepted."""

    identity: Identity
    permit: PushPermit


async def upload(context: MavenContext, request: Request, target: FilePath | Checksum) -> Response:
    """
    Store the body at a path, merge it if it is metadata, or compare it if the path is that of a checksum.

    :raises Refusal: a rule forbids it; :raises Invalid: it is malformed; :raises DigestMismatch: it is damaged
    :raises Conflict: a folder is at the path, or a file where a folder is needed
    """
    services, repository = context.services, context.repository
    identity = await services.access.identify(request)
    permit = await check_push(services, identity, repository, target, actor_of(request, identity))
    _check_whole(request)
    _check_tool(request, target)
    if isinstance(target, Checksum):
        return await _checksum(context, request, identity, target)
    expected = read_digests(request)
    replaces = await _check_place(context, request, permit, target, expected, request.body.declared)
    limit = services.max_upload
    if isinstance(target, Metadata):
        limit = min(limit, LARGEST)
    async with services.content.stage(repository, user_id=identity.user_id) as staged:
        blob = await receive_body(request, staged, limit=limit, algorithms=ALGORITHMS, expected=expected)
        changed = await _store(context, request, target, staged, blob)
    return Response(201 if changed and not replaces else 200)


async def upload_sent(context: MavenContext, request: Request, sent: SentFile, target: ArtifactFile | None) -> Uploaded:
    """
    Publish the file of a form at a path, as a PUT does; without ``target`` where the POM that it is or has says.

    :raises Invalid: it does not say where it belongs; otherwise as for ``upload``
    """
    services, repository = context.services, context.repository
    identity = await services.access.identify(request)
    if target is None:
        await services.access.require(identity, Action.WRITE, repository, Extent.SOME)
    else:
        permit = await check_push(services, identity, repository, target, actor_of(request, identity))
        await _check_place(context, request, permit, target, {}, None)
    async with services.content.stage(repository, user_id=identity.user_id) as staged:
        blob = await sent.receive(staged, ALGORITHMS)
        if target is None:
            target = await staged.inspect(services.pools.cpu, blob, partial(find_place, name=sent.name))
        changed = await _store(context, request, target, staged, blob)
    at = target.coordinates
    return Uploaded(at.package_key, at.version, changed, target.path, blob.sha256)


def find_place(content: int | bytes, name: str) -> ArtifactFile:
    """
    Return where a POM, or an archive with its POM, belongs that is given as a descriptor or bytes. Blocks.

    :raises Invalid: it does not say that
    """
    is_pom = name.endswith(POMS)
    inner = None if is_pom else read_inner_pom(content)
    pom = read_pom_file(content) if is_pom else None if inner is None else read_pom(inner)
    said = () if pom is None else (pom.group, pom.artifact, pom.version)
    if not said or not all(said) or any("${" in each for each in said):
        raise Invalid(
            f"{name} does not say where it belongs: the form needs the group and the artifact and the version of the "
            "file, or a POM that says it, or its path",
            "group",
        )
    group, artifact, version = said
    stem = f"{artifact}-{version}"
    if not is_pom and not name.startswith(stem):
        raise Invalid(f"{name} does not begin with {stem}, as its POM says; give its path", "path")
    return read_place(f"{group.replace('.', '/')}/{artifact}/{version}/{f'{stem}.pom' if is_pom else name}")


def read_place(path: str) -> ArtifactFile:
    """Parse the path of a file of an artifact. :raises Invalid: it is another one"""
    found = parse_text(path)
    if not isinstance(found, ArtifactFile):
        raise Invalid(f"{path} is no path of an artifact: GROUP/ARTIFACT/VERSION/ARTIFACT-VERSION.ENDING", "path")
    return found


async def _store(context: MavenContext, request: Request, target: FilePath, staged: Staged, blob: BlobInfo) -> bool:
    """Check the caller and the rules again, and publish what has arrived. Returns whether that changed anything."""
    services, repository = context.services, context.repository
    identity = await services.access.identify(request, counted=False)
    permit = await check_push(services, identity, repository, target, actor_of(request, identity))
    push = Push(identity, permit)
    try:
        if isinstance(target, Metadata):
            actor, group = permit.admitted, permit.group
            judge = None if group is None else partial(_judge_list, context, identity, group)
            return await store_metadata(services, repository, target, staged, blob, actor, judge)
        if isinstance(target, PlainFile):
            return await _put_plain(context, request, push, target, staged, blob)
        return await _publish(context, request, push, target, staged, blob)
    except FileExists:
        raise permit.why_not from None
    except FileBurned:
        raise _burned(target.path) from None


async def _judge_list(
    context: MavenContext, identity: Identity, group: str, read: ReadMetadata, listed: Collection[Plugin]
) -> None:
    """
    Check metadata of a group, which has ``listed``, by a pusher who may list plugins there, and nothing else.

    :raises Forbidden: they say more, or list a plugin that the pusher may not publish
    """
    services, repository = context.services, context.repository
    if read.versions or read.snapshots or read.others:
        raise Forbidden(f"in the metadata of group {group} you may list the plugins that you may publish, and no more")
    await check_plugins(services, identity, repository, group, artifacts_of_changes(read.plugins, listed))


async def _publish(
    context: MavenContext, request: Request, push: Push, target: ArtifactFile, staged: Staged, blob: BlobInfo
) -> bool:
    services = context.services
    permit = push.permit
    pom = await _read_pom(context, staged, target, blob)
    more: dict[str, Any] = {}
    if target.extension == "jar" and not target.classifier and target.role is None:
        facts = await staged.inspect(services.pools.cpu, blob, read_jar)
        more = {FACTS: facts} if facts else {}
    if pom is not None:
        at = target.coordinates
        mismatch = pom.mismatch(at.group, at.artifact, at.version)
        more = {} if mismatch is None else {"mismatch": mismatch}
    now_ms = services.clock.now_ms()

    def guard(tx: Transaction) -> None:
        _guard(context, tx, request, target, blob, now_ms)

    release = make_release(
        target.coordinates,
        [new_file(target, blob, **more)],
        None if pom is None else pom.meta(),
        overwrite=permit.overwrite,
        reuse=permit.reuse,
        guard=guard,
    )
    actor = permit.admitted
    published = await services.content.publish(context.repository, release, staged, actor, index_artifact)
    if pom is None or pom.packaging == PACKAGING:
        holder = await _holder(services, context.repository, published)
        await list_plugin(services, holder, target, push.identity, actor)
    return published.changed


async def _holder(services: Services, repository: Repository, published: Published) -> Repository:
    """The repository that has what was published: that, or one of a stage to which brakes have led it."""
    if all(each.repository_id == repository.id for each in published.files):
        return repository
    await services.registry.refresh()
    found = services.registry.find_id(published.files[0].repository_id)
    return existing(found, "stage", repository.path)


async def _put_plain(
    context: MavenContext, request: Request, push: Push, target: PlainFile, staged: Staged, blob: BlobInfo
) -> bool:
    guard = partial(_guard, context, request=request, target=target, blob=blob, now_ms=context.services.clock.now_ms())
    new = NewFile(path=target.path, blob=blob, media_type=media_type(target.path))
    permit = push.permit
    put = await context.services.content.put_plain(
        context.repository, new, staged, permit.overwrite, permit.admitted, guard
    )
    return put.changed and not put.replaced


def _guard(
    context: MavenContext, tx: Transaction, request: Request, target: FilePath, blob: BlobInfo, now_ms: int
) -> None:
    """Check in the transaction that the file can be here, and that it is the one that checksums announced."""
    repository = context.repository
    path = target.path
    found = files.find_file(tx, repository.id, path)
    _check_conditions(context, request, target, found)
    if found is None:
        check_place(tx, repository.id, path)
    for algorithm, digest in checksum_claims.claims_for(tx, repository.id, path, now_ms).items():
        if blob.digests[algorithm] != digest:
            raise DigestMismatch(algorithm, digest, blob.digests[algorithm])
    checksum_claims.remove_claims(tx, repository.id, [path])


async def _check_place(
    context: MavenContext,
    request: Request,
    permit: PushPermit,
    target: FilePath,
    expected: dict[str, str],
    size: int | None,
) -> bool:
    """
    Whether a file is at the path that will be replaced, or may be the same.

    :raises Refusal: it is another one, as far as the head tells, and may not be replaced
    :raises Conflict: see L{check_place}
    """
    services, repository = context.services, context.repository
    path = target.path
    found: File | None = await services.catalog.look(files.find_file, repository.id, path)
    _check_conditions(context, request, target, found)
    if found is None:
        await services.catalog.look(check_place, repository.id, path)
        if not permit.reuse and await services.catalog.look(has_tombstone, repository.id, path):
            raise _burned(path)
        return False
    if not permit.overwrite:
        same = all(found.digests.get(algorithm, digest) == digest for algorithm, digest in expected.items())
        if not same or (size is not None and size != found.size):
            raise permit.why_not
    return True


def _check_conditions(context: MavenContext, request: Request, target: FilePath, found: File | None) -> None:
    etag = None if found is None else present_file(context.repository, target, found.digests).etag
    check_preconditions(request, etag, None if found is None else int(found.created_at.timestamp()))


async def _read_pom(context: MavenContext, staged: Staged, target: ArtifactFile, blob: BlobInfo) -> Pom | None:
    """What the uploaded file says of its version, if it is a POM. :raises Invalid: it is malformed"""
    if target.extension != "pom" or target.classifier or blob.size > POM_SIZE:
        return None
    return await staged.inspect(context.services.pools.cpu, blob, read_pom_file)


async def _checksum(context: MavenContext, request: Request, identity: Identity, target: Checksum) -> Response:
    """Compare a checksum with what is stored; if that has not arrived yet, keep the checksum until then."""
    services, repository = context.services, context.repository
    body = await request.body.read_all(CHECKSUM_SIZE)
    if not isinstance(target.of, (ArtifactFile, PlainFile)):
        return Response(201)  # metadata is made here, and differs from what the client computed
    digest = parse_checksum(body, target.algorithm)
    path = target.of.path
    found: File | None = await services.catalog.look(files.find_file, repository.id, path)
    if found is None:
        found = await services.content.change(put_claim, repository, path, target.algorithm, digest)
    stored = digest if found is None else found.digests.get(target.algorithm, digest)
    if found is None or stored == digest:
        return Response(201)
    actor = actor_of(request, identity)
    await services.content.change(note_mismatch, repository, found, target.algorithm, digest, actor)
    raise Refusal(400, f"{target.algorithm} mismatch: server has {stored}", "digest_mismatch")


def _burned(path: str) -> Refusal:
    name = path.rpartition("/")[2]
    return Refusal(409, f"{name} was deleted, and is not published again (allow_overwrite)", "file_exists")


def _check_tool(request: Request, target: FilePath | Checksum) -> None:
    """Check that no npm package is put: it would be a plain file here, and its publisher would read of a success."""
    # pnpm and yarn name npm, too, and bun 1.4 has its header.
    is_npm = b"npm/" in (request.header(b"user-agent") or b"") or request.header(b"npm-command") is not None
    if isinstance(target, PlainFile) and is_npm:
        raise Refusal(415, "this is a repository of Java artifacts, and takes no npm packages", "wrong_format")


def _check_whole(request: Request) -> None:
    """Check that the body is the whole file as it is (RFC 9110 sections 14.5 and 8.4)."""
    if request.header(b"content-range") is not None:
        raise Invalid("a file is uploaded whole, without Content-Range")
    coding = (request.header(b"content-encoding") or b"identity").strip().lower()
    if coding not in (b"", b"identity"):
        raise Refusal(415, "files are uploaded as they are, without Content-Encoding", "content_coding")


MISMATCH = "checksum_mismatch"  # the kind of the event


def put_claim(
    tx: Transaction, repository: Repository, path: str, algorithm: str, digest: str, now_ms: int
) -> File | None:
    """
    Keep a checksum until its file arrives; the file, if it has arrived meanwhile.

    :raises Conflict: too many are kept
    """
    found = files.find_file(tx, repository.id, path)
    if found is None and not checksum_claims.put_claim(tx, repository.id, path, algorithm, digest, now_ms):
        raise Conflict(f"too many checksums wait for their files in {repository.path}; upload the files first")
    return found


def note_mismatch(
    tx: Transaction, repository: Repository, file: File, algorithm: str, digest: str, actor: Actor, now_ms: int
) -> None:
    """Append an event that says which checksum a client has for a file."""
    package_key, version_key = package_and_version_of_file(tx, file.id) or ("", "")
    events.append_event(
        tx,
        repository_id=repository.id,
        package_id=file.package_id,
        package_key=package_key,
        version_key=version_key,
        kind=MISMATCH,
        data={"path": file.path, "algorithm": algorithm, "sent": digest, "stored": file.digests[algorithm]},
        actor=actor,
        now_ms=now_ms,
    )


async def list_plugin(
    services: Services, repository: Repository, target: ArtifactFile, identity: Identity, actor: Actor
) -> None:
    """
    Add the plugin to which a stored file belongs to the metadata of its group, when its POM and its jar are stored.

    A pusher who may not change the metadata of the group leaves them as they are, and the file is published.
    """
    if target.classifier or target.extension not in ("pom", "jar"):
        return
    jar: File | None = await services.catalog.look(_find_jar, repository.id, target)
    if jar is None:
        return
    at = target.coordinates
    try:
        permit = await check_push(services, identity, repository, group_metadata(at.group), actor)
    except (Refusal, PkgrepoError):
        return
    look = partial(find_plugin, artifact=at.artifact)
    found = await services.files.inspect(services.pools.cpu, jar.storage_id, jar, look) or usual_plugin(at.artifact)
    plugin = Plugin(found["prefix"], at.artifact, found["name"])

    async def check(change: PluginChange) -> None:
        if permit.group is not None:
            artifacts = artifacts_of_changes([plugin], change.listed)
            await check_plugins(services, identity, repository, at.group, artifacts)

    with suppress(Forbidden):  # the prefix is that of another project's plugin
        await change_plugins(services, repository, at.group, permit.admitted, added=(plugin,), check=check)


def _find_jar(r: Reader, repository_id: int, target: ArtifactFile) -> File | None:
    """The jar of a version whose POM says that it is a plugin."""
    at = target.coordinates
    package = packages.find_package(r, repository_id, at.package_key)
    version = None if package is None else versions.find_version(r, package.id, at.version)
    if version is None or version.meta.get("packaging") != PACKAGING:
        return None
    return files.find_file(r, repository_id, target.path.removesuffix(target.extension) + "jar")

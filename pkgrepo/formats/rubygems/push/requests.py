"""
``gem push``: the gem is the body, or the part ``gem`` of a form. It is inspected, and published as a release.

``gem push --attestation`` sends a form, with a list of Sigstore bundles in its part ``attestations``. They are verified
before the gem is published, and kept beside it.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from attrs import evolve, frozen

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.formats.rubygems import configuration
from pkgrepo.formats.rubygems.gemspec import GemSpec, meta_of
from pkgrepo.formats.rubygems.indexer import apply_change
from pkgrepo.formats.rubygems.legacy import quick_gemspec
from pkgrepo.formats.rubygems.names import full_version, sort_key, spelling
from pkgrepo.formats.rubygems.paths import ATTESTATIONS, GEM_TYPE, gem_path, hidden_path, quick_path
from pkgrepo.formats.rubygems.provenance import check_pushed, read_bundles
from pkgrepo.formats.rubygems.push.gem_metadata import inspect_gem
from pkgrepo.formats.rubygems.refusals import CASE, REPUSH, UNATTESTED, UNREADABLE, UNSAVED, YANKED
from pkgrepo.gateway.bodies import check_declared_length, receive_body
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import sent_file
from pkgrepo.gateway.services import Context
from pkgrepo.http.reading.multipart import MultipartLimits, read_form
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response, text_response
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, BlobInfo, File, NewFile, Version, VersionState
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.sigstore.bundles import LARGEST
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.packages.files import has_tombstone

QUICK_ROLE = "quick"  # of the specification beside a gem

GEM_PART: Final = "gem"
ATTESTATIONS_PART: Final = "attestations"
FORM_OVERHEAD: Final = 16 * 1024 * 1024  # bytes that a form may have besides the gem: attestations
FORM_LIMITS: Final = MultipartLimits(parts=16)
_MULTIPART: Final = b"multipart/form-data"
_CONTENT: Final = "content"  # the pointer of errors in the archive itself, not in what it says


@frozen
class InspectedGem:
    """What a gem says of itself, and the same as old clients read it from the legacy index."""

    spec: GemSpec
    quick: bytes


def read_gem(file: int | bytes) -> InspectedGem:
    """
    Inspect a gem, see L{inspect_gem}. Blocks: call it in a thread.

    :raises Invalid: it is damaged, or cannot be served
    """
    spec = inspect_gem(file)
    return InspectedGem(spec, quick_gemspec(spec))


async def push(context: Context[object], request: Request) -> Response:
    """
    Publish the gem in the request. Pushing the same bytes again succeeds.

    :raises Conflict: what is published forbids it; :raises Forbidden: the caller may not push this gem
    :raises Refusal: the body is no gem, or one that clients could not install
    """
    identity = await context.admit(request, Action.WRITE)
    async with context.services.content.stage(context.repository, user_id=identity.user_id) as staged:
        blob, attestations = await _receive(context, request, staged)
        spec, changed = await _accept(context, request, staged, blob, attestations)
    if not changed:
        late = "\nIts attestations were not taken: they come with the first push." if attestations else ""
        return text_response(f"Gem was already pushed: {spec.name} ({spec.full_version}){late}")
    done = f"Successfully registered gem: {spec.name} ({spec.full_version})"
    return text_response("\n".join((done, *request.notes)))  # gem prints the body


async def take_file(context: Context[object], request: Request, sent: SentFile) -> Uploaded:
    """Publish a gem that is the file of a form; see ``pkgrepo.gateway.publishing.uploads``."""
    async with sent_file(context, request, sent) as (target, staged, blob):
        spec, changed = await _accept(target, request, staged, blob)
    return Uploaded(spec.name, spec.full_version, changed, gem_path(spec.full_name), blob.sha256)


async def _accept(
    context: Context[object], request: Request, staged: Staged, blob: BlobInfo, attestations: bytes = b""
) -> tuple[GemSpec, bool]:
    """Verify a staged gem and publish it; with the gem's specification whether that changed anything."""
    if not blob.size:
        raise Refusal(400, "the body must be a gem, and it is empty", "empty")
    try:
        gem = await staged.inspect(context.services.pools.cpu, blob, read_gem)
    except Invalid as error:
        template = UNREADABLE if error.pointer == _CONTENT else UNSAVED
        raise Refusal(422, template.format(why=error.message), "invalid") from None
    identity, admitted = await context.admit_publishing(request, gem.spec.name)  # again: the body may have taken hours
    if attestations:
        pools, root = context.services.pools, context.services.proxy.trusted_root
        try:
            await pools.cpu(check_pushed, attestations, blob.sha256, root, identity.pipeline)
        except Invalid as error:
            raise Refusal(422, UNATTESTED.format(why=error.message), "invalid") from None
    return gem.spec, await _publish(context, staged, blob, gem, admitted, attestations)


async def _receive(context: Context[object], request: Request, staged: Staged) -> tuple[BlobInfo, bytes]:
    """The gem that a request has, and the list of its attestations, which is empty if it has none."""
    limit = context.services.max_upload
    content_type = request.header(b"content-type") or b""
    if not content_type.lower().startswith(_MULTIPART):
        # curl's --data-binary says that the body is a form in the address encoding: the type means nothing.
        return await receive_body(request, staged, limit=limit), b""
    check_declared_length(request, limit + FORM_OVERHEAD)
    blob: BlobInfo | None = None
    attestations = b""
    async for part in read_form(request.body, content_type, FORM_LIMITS):
        if part.name == GEM_PART:
            if blob is not None:
                raise Refusal(400, "the form has more than one part named 'gem'", "bad_form")
            blob = await staged.receive_part(part, request.body.declared, limit)
        elif part.name == ATTESTATIONS_PART:
            if attestations:
                raise Refusal(400, "the form has more than one part named 'attestations'", "bad_form")
            attestations = await part.read_bytes(LARGEST)
    if blob is None:
        raise Refusal(400, "the form has no part named 'gem'", "bad_form")
    try:
        return blob, attestations if attestations and read_bundles(attestations) else b""
    except Invalid as error:
        raise Refusal(400, error.message, "bad_form") from None


async def _publish(
    context: Context[object], staged: Staged, blob: BlobInfo, gem: InspectedGem, actor: Admitted, attestations: bytes
) -> bool:
    """
    Publish a staged gem. Returns False if the same bytes are published already.

    :raises Conflict: a rule of L{check_release} forbids it
    """
    repository, spec = context.repository, gem.spec
    policy = configuration.policy(repository)
    path = gem_path(spec.full_name)
    found: File | None = await context.services.catalog.look(files.find_file, repository.id, path)
    if found is not None and found.sha256 == blob.sha256:
        return False
    release = evolve(
        await make_release(staged, blob, gem, attestations),
        reuse=policy.reuse_deleted_names,
        guard=partial(check_release, repository_id=repository.id, policy=policy, spec=spec, blob=blob),
    )
    published = await context.services.content.publish(repository, release, staged, actor, apply_change)
    return published.changed


async def make_release(staged: Staged, blob: BlobInfo, gem: InspectedGem, attestations: bytes = b"") -> Release:
    """The release of a gem whose bytes are staged; its quick gemspec, and its attestations, are staged with them."""
    spec, quick = gem.spec, await staged.store(gem.quick)
    path, beside = gem_path(spec.full_name), list[NewFile]()
    if attestations:
        kept, role = await staged.store(attestations), {"role": ATTESTATIONS}
        beside.append(NewFile(path=path + ATTESTATIONS, blob=kept, media_type="application/json", attrs=role))
    return Release(
        package_key=spec.name,
        package_name=spec.name,
        version_key=spec.full_version,
        version_text=spec.full_version,
        sort=sort_key(spec.number, spec.platform),
        files=(
            NewFile(path=path, blob=blob, media_type=GEM_TYPE),
            NewFile(path=quick_path(spec.full_name), blob=quick, media_type=GEM_TYPE, attrs={"role": QUICK_ROLE}),
            *beside,
        ),
        meta=meta_of(spec),
    )


def check_release(
    tx: Transaction, *, repository_id: int, policy: configuration.Policy, spec: GemSpec, blob: BlobInfo
) -> None:
    """
    Check, inside the transaction, that a gem may be published.

    :raises Conflict: the version is yanked, or published with other bytes; the file name belongs to another gem; or
        the repository's policy forbids the number or the name
    """
    path = gem_path(spec.full_name)
    package = packages.find_package(tx, repository_id, spec.name)
    version = None if package is None else versions.find_version(tx, package.id, spec.full_version)
    if _is_yanked(tx, repository_id, path, version) or (
        not policy.reuse_deleted_names and has_tombstone(tx, repository_id, path)
    ):
        raise Conflict(YANKED.format(version=spec.full_name))
    found = files.find_file(tx, repository_id, path)
    if found is not None and found.sha256 != blob.sha256:
        raise Conflict(REPUSH if version is not None else f"{spec.full_name}.gem is published as a file of another gem")
    if package is not None and version is None and policy.unique_numbers:
        _check_number(tx, package.id, spec)
    if policy.unique_spellings:
        _check_spelling(tx, repository_id, spec.name)


def _is_yanked(r: Reader, repository_id: int, path: str, version: Version | None) -> bool:
    if version is not None and version.state is VersionState.YANKED:
        return True
    hidden = hidden_path(path)  # also one of another gem, whose full name is the same
    return files.find_file(r, repository_id, hidden) is not None or has_tombstone(r, repository_id, hidden)


def _check_number(r: Reader, package_id: int, spec: GemSpec) -> None:
    equal = versions.texts_of_sort(r, package_id, sort_key(spec.number, spec.platform))
    if equal:
        raise Conflict(
            f"There was a problem saving your gem: version {full_version(spec.number, spec.platform)} is the same as "
            f"{equal[0]}, which is published (policy.unique_numbers of the repository)"
        )


def _check_spelling(r: Reader, repository_id: int, name: str) -> None:
    others = [each for each in packages.live_names(r, repository_id, spelling(name)) if each != name]
    if not others:
        return
    if any(each.lower() == name.lower() for each in others):
        raise Conflict(CASE)
    raise Conflict(
        f"There was a problem saving your gem: name {name} differs from the published gem {others[0]} only in '-', "
        "'_' or case (policy.unique_spellings of the repository)"
    )

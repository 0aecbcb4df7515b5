"""
Enforcement of a repository's push rules, before the body of a request and again after it.

===  ============================  ======================================================================  ============
no.  rule                          it concerns                                                             refusal
===  ============================  ======================================================================  ============
1    authentication                every push                                                              401
2    must_use_auth_token_for_push  every push                                                              403
3    permission to write           every push; that of a plain file is asked for its path, with dots       403
4    must_be_project_member        files of artifacts; metadata and plain files only where a project        403
                                   owns the artifact or group in whose folder they are
5    require_service_deploy        every push that is no bundle                                            403
     a deploy session is open      every push to its artifact that is not part of it                       409
6    push_policy                   files of artifacts, and the metadata of snapshots                       409
7    allow_overwrite               files, but neither metadata nor snapshots without a timestamp           409
===  ============================  ======================================================================  ============

The last rule is decided in the transaction; see ``upload``. A checksum is treated as what it is of. Rules 1 to 4 apply
to deletions, too, which need the permission to delete.
"""

from __future__ import annotations

from attrs import frozen

from pkgrepo.errors import AuthenticationRequired, Forbidden
from pkgrepo.gateway.services import Services
from pkgrepo.http.responses import Refusal
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.proxy.virtual import check_publishes
from pkgrepo.storage.catalog.packages import deployments

from .configuration import RELEASES, SNAPSHOTS, PushRules
from .names import is_snapshot
from .paths import ArtifactFile, Checksum, FilePath, Metadata, PlainFile

LONGEST_SHOWN = 40  # characters of a version in a refusal


@frozen
class PushPermit:
    """
    What a push may do.

    ``overwrite`` says whether it may replace a file that has other content, and ``why_not`` why it may not. ``reuse``
    says whether it may use the path of a deleted file.
    """

    rules: PushRules
    overwrite: bool
    why_not: Refusal
    reuse: bool


async def check_push(
    services: Services, identity: Identity, repository: Repository, target: FilePath | Checksum, *, deploy: bool = False
) -> PushPermit:
    """
    Check whether a caller may push to a path, in the order of the table above; ``deploy`` means as part of a bundle.

    :raises AuthenticationRequired, Forbidden, ReadOnly, RepositoryInactive: see L{Access.require}
    :raises Refusal: a rule forbids it
    """
    found = target.of if isinstance(target, Checksum) else target
    rules = PushRules.of(repository)
    if identity.anonymous:
        raise AuthenticationRequired
    await check_token(services, identity, repository)
    key = await require_change(services, identity, Action.WRITE, repository, found)
    if rules.require_service_deploy and not deploy:
        address = f"/repositories/{repository.path}/deploy"
        raise Refusal(403, f"This repository accepts bundle deploys only: POST {address}", "service_deploy_required")
    if not deploy:
        await _check_no_session(services, repository, found)
    check_push_policy(rules, found)
    exempt = not isinstance(found, PlainFile) and (isinstance(found, Metadata) or found.literal_snapshot)
    may_replace = exempt or await services.access.authorizer.may(identity, Action.OVERWRITE, repository, key)
    name = _shown(found.path.rpartition("/")[2])
    if rules.allow_overwrite:
        why_not = Refusal(403, f"{name} already exists; to replace it you need the permission 'overwrite'", "forbidden")
    else:
        why_not = Refusal(409, f"{name} already exists; overwriting is disabled (allow_overwrite)", "file_exists")
    return PushPermit(
        rules=rules,
        overwrite=exempt or (rules.allow_overwrite and may_replace),
        why_not=why_not,
        reuse=exempt or rules.allow_overwrite,
    )


async def check_token(services: Services, identity: Identity, repository: Repository) -> None:
    """Check that the caller uses a token where the repository wants one. :raises Refusal: the caller does not"""
    try:
        await services.access.authorizer.check_push_rules(identity, Action.WRITE, repository)
    except Forbidden:
        sentence = "Use an auth token instead of a password for this repository"
        raise Refusal(403, sentence, "token_required") from None


async def _check_no_session(services: Services, repository: Repository, target: FilePath) -> None:
    """Check that no deploy session for the artifact is open. :raises Refusal: one is"""
    key = permission_keys(target)[0]
    now_ms = services.clock.now_ms()
    if await services.catalog.look(deployments.has_open_session, repository.id, key, now_ms):
        raise Refusal(409, f"A deploy session for {_shown(key)} is open", "session_open")


def check_push_policy(rules: PushRules, target: FilePath) -> None:
    """Check that the repository accepts this kind of version. :raises Refusal: it does not"""
    version = target.coordinates.version if isinstance(target, ArtifactFile) else None
    if isinstance(target, Metadata):
        version = target.version
    sentence = None if version is None else _refusal_of(rules, version)
    if sentence is not None:
        raise Refusal(409, sentence, "push_policy")


def refuses(repository: Repository, version: str) -> str | None:
    """Why a repository takes no version of this text, as a sentence; None if it does."""
    return _refusal_of(PushRules.of(repository), version)


def _refusal_of(rules: PushRules, version: str) -> str | None:
    unwanted = RELEASES if is_snapshot(version) else SNAPSHOTS
    return f"Repository accepts only {unwanted}; {_shown(version)} refused" if rules.push_policy == unwanted else None


def permission_keys(target: FilePath) -> tuple[str, ...]:
    """
    The package keys by which permissions for a path are asked; one that is allowed suffices.

    A plain file has its path with dots for slashes, so that callers who may push to all of a group may push there too.
    The directory of metadata may be an artifact or a group.
    """
    if isinstance(target, ArtifactFile):
        return (target.coordinates.package_key,)
    if isinstance(target, Metadata) and target.package_key is not None:
        group = target.directory.replace("/", ".")
        return (target.package_key, group) if target.version is None else (target.package_key,)
    return (target.path.replace("/", "."),)


async def require_any(
    services: Services, identity: Identity, action: Action, repository: Repository, target: FilePath
) -> str:
    """
    The package key for which the caller has a permission for what is at a path.

    :raises Forbidden: the caller may not; for the other errors see L{Access.require}
    """
    *others, last = permission_keys(target)
    for key in others:
        if await services.access.authorizer.may(identity, action, repository, key):
            last = key
            break
    await services.access.require_permission(identity, action, repository, last)
    return last


async def require_change(
    services: Services, identity: Identity, action: Action, repository: Repository, target: FilePath
) -> str:
    """
    The package key for which the caller may change what is at a path, by permissions and by membership in projects.

    :raises Forbidden: there is none, or another project owns the place; for the other errors see L{Access.require}
    """
    if isinstance(target, ArtifactFile):
        key = target.coordinates.package_key
        await services.access.require(identity, action, repository, key)
        return key
    key = await require_any(services, identity, action, repository, target)
    check_publishes(repository)
    check_member, folder = services.access.authorizer.check_project_member, target.path.rpartition("/")[0]
    if isinstance(target, PlainFile) or target.package_key is None:
        if folder:
            await check_member(identity, repository, f"{folder}/", unowned_ok=True)
        return key
    first, *others = permission_keys(target)
    try:
        await check_member(identity, repository, first, unowned_ok=True)
    except Forbidden as refused:
        for other in others:  # the artifact is of another project, but the group of the same path may be of this one
            try:
                await check_member(identity, repository, other)
            except Forbidden:
                continue
            return key
        raise refused from None
    return key


def _shown(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."

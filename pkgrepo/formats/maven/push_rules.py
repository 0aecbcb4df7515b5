"""
Enforcement of a repository's push rules, before the body of a request and again after it.

===  ============================  ======================================================================  ============
no.  rule                          it concerns                                                             refusal
===  ============================  ======================================================================  ============
1    authentication                every push                                                              401
2    must_use_auth_token_for_push  every push                                                              403
3    permission to write           every push; that of a plain file in no package's folder is asked for    403
                                   its path, with dots
4    must_be_project_member,       every push. A plain file in a package's folder belongs to the package;  403
     requires_approval (but not    elsewhere who owns the folder decides, and without an owner who
     deletions)                    administers the repository. Who may publish an artifact of a group may
                                   list its plugins in the metadata of the group
5    require_service_deploy        every push that is no bundle                                            403
     a deploy session is open      every push to its artifact that is not part of it                       409
6    push_policy                   files of artifacts, and the metadata of snapshots                       409
7    allow_overwrite               files, but neither metadata nor snapshots without a timestamp           409
===  ============================  ======================================================================  ============

The last rule is decided in the transaction; see ``upload``. A checksum is treated as what it is of. Rules 1 to 4 apply
to deletions, too, which need the permission to delete.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from attrs import frozen

from pkgrepo.errors import AuthenticationRequired, Forbidden
from pkgrepo.gateway.services import Services
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Actor, Identity, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.storage.catalog.packages import deployments, packages
from pkgrepo.storage.catalog.people.projects import list_bindings

from .configuration import RELEASES, SNAPSHOTS, PushRules
from .names import is_snapshot
from .paths import SEARCH, TAKEN, ArtifactFile, Checksum, FilePath, Metadata, PlainFile, package_key_of

LONGEST_SHOWN = 40  # characters of a version in a refusal


@frozen
class PushPermit:
    """
    What a push may do.

    ``overwrite`` says whether it may replace a file that has other content, and ``why_not`` why it may not. ``reuse``
    says whether it may use the path of a deleted file. With ``group`` it may only list plugins; see L{Change}.
    """

    rules: PushRules
    overwrite: bool
    why_not: Refusal
    reuse: bool
    admitted: Admitted
    group: str | None = None


async def check_push(
    services: Services,
    identity: Identity,
    repository: Repository,
    target: FilePath | Checksum,
    actor: Actor,
    *,
    deploy: bool = False,
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
    change = await require_change(services, identity, repository, found, actor)
    key = change.key
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
        admitted=change.admitted,
        group=change.group,
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
    """Check that the repository accepts this path, and this kind of version. :raises Refusal: it does not"""
    if target.path == SEARCH or target.path.partition("/")[0] in TAKEN:
        reserved = f"{_shown(target.path)} is reserved: nothing that is published there is read"
        raise Refusal(409, reserved, "reserved_path")
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


@frozen
class Change:
    """
    A change that a caller may make: ``key`` is the package, or the name of a plain file, by which it was ``admitted``.

    With ``group`` the caller may only list plugins of that group in its metadata, as far as they may publish these.
    """

    key: str
    admitted: Admitted
    group: str | None = None


async def require_change(
    services: Services, identity: Identity, repository: Repository, target: FilePath, actor: Actor
) -> Change:
    """
    Check that a caller may publish what is to be at a path, by permissions and by all push rules.

    A path in a package's folder belongs to the package, also where it is no file of a version. The metadata of a
    directory may be those of an artifact and of a group; who may publish some artifact of the group may list its
    plugins.

    :raises Forbidden: the caller may not; for the other errors see L{Access.require}
    """
    publishing, paths = partial(services.access.publishing, identity, repository, actor=actor), (target.path,)
    if isinstance(target, PlainFile):
        package = await services.catalog.look(find_package_of, repository.authority.id, target.path)
        if package is not None:
            return Change(package, await publishing(package, paths=paths))
        [key] = permission_keys(target)
        folder = f"{target.path.rpartition('/')[0]}/"
        return Change(key, await publishing(key, folder=folder, paths=paths))
    if isinstance(target, ArtifactFile):
        key = target.coordinates.package_key
        return Change(key, await publishing(key))
    if target.version is not None and target.package_key is not None:
        return Change(target.package_key, await publishing(target.package_key, paths=paths))
    if not target.directory:
        [key] = permission_keys(target)
        return Change(key, await publishing(key, folder="/", paths=paths))
    return await _require_list(services, identity, repository, target, actor)


async def _require_list(
    services: Services, identity: Identity, repository: Repository, target: Metadata, actor: Actor
) -> Change:
    """Check that a caller may write the metadata of a directory: as those of an artifact, or of a group."""
    publishing, paths = partial(services.access.publishing, identity, repository, actor=actor), (target.path,)
    group = target.directory.replace("/", ".")
    first = target.package_key or group
    try:
        return Change(first, await publishing(first, paths=paths))
    except Forbidden as refused:
        try:  # the artifact is of another project, but the group of the same path may be of this one
            await services.access.authorizer.check_project_member(identity, repository, group)
            return Change(group, await publishing(group, paths=paths))
        except Forbidden:
            pass
        for each in await services.catalog.look(find_artifacts_of_group, repository.authority.id, group):
            if await may_publish(services, identity, repository, each):
                return Change(first, await publishing(each, paths=paths), group)
        raise refused from None


async def may_publish(services: Services, identity: Identity, repository: Repository, package: str) -> bool:
    """Whether a caller may publish a package, by permissions and push rules."""
    try:
        await services.access.require(identity, Action.WRITE, repository, package)
    except Forbidden:
        return False
    return True


async def check_plugins(
    services: Services, identity: Identity, repository: Repository, group: str, artifacts: Iterable[str]
) -> None:
    """
    Check that a caller may publish the artifacts whose plugins the metadata of a group are to list otherwise.

    :raises Forbidden: one of them is none that the caller may publish
    """
    for each in artifacts:
        await services.access.require(identity, Action.WRITE, repository, f"{group}:{each}")


def find_package_of(r: Reader, repository_id: int, path: str) -> str | None:
    """The key of the package with the innermost folder that a path lies in; None: it lies in no package's folder."""
    segments = path.split("/")[:-1]
    for count in range(len(segments), 1, -1):
        key = package_key_of(segments[:count])
        if key is not None and packages.find_package(r, repository_id, key) is not None:
            return key
    return None


def find_artifacts_of_group(r: Reader, repository_id: int, group: str) -> list[str]:
    """The artifacts of a group that are owned by projects."""
    found = (each.pattern for each in list_bindings(r, repository_id=repository_id))
    return [each for each in found if each.startswith(f"{group}:") and not each.endswith(":*")]


def _shown(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."

"""
The gate in: what makes bytes, a name, a tag or a document visible passes here, and gets an L{Admitted} for it.

===================================  ===================================================================================
who                                  what is asked
===================================  ===================================================================================
a caller, by L{admit}                the permission for the package or path, and all push rules of publishing. Bringing
                                     back (un-yank, restore from the trash, a tag of before) is publishing
an approver of a stage, by           the right to approve each package and plain file in it, and the push rules
L{admit_approver}
the server's own work, by            nothing: it follows what was decided before; each L{Road} says where
L{admit_server}
===================================  ===================================================================================

Write commands check the value again, see L{Admitted.check}. Nothing else makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Final

from attrs import evolve, frozen

from pkgrepo.errors import AuthenticationRequired, Forbidden
from pkgrepo.interfaces import IAuthorizer
from pkgrepo.model import SYSTEM, Action, Actor, Extent, Identity, Repository
from pkgrepo.model.admission import Admitted, path_name

NO_APPROVER: Final = (
    "stages of {} are approved by those who have the action admin there, or the role maintainer in the projects that "
    "own the packages"
)


class Road(StrEnum):
    """Work of the server itself that makes something visible, and where it was decided before."""

    PROXY = "proxy"  # what an upstream has, for clients of a proxy: by the routes and rules of that repository
    REPLICA = "replica"  # what the primary has, which has judged it
    REINDEX = "reindex"  # what the readable layout has, which was published before
    CONVERSION = "conversion"  # conda packages of published wheels, and their states
    IMPORT = "import"  # another registry, a folder or a bundle; started by who has the action admin
    LISTS = "lists"  # lists of plugins and tags that follow from what was removed


@frozen(kw_only=True)
class _Admitted(Admitted):
    """The one kind of L{Admitted}."""

    road: str = ""

    def by(self) -> str:
        """What admitted it."""
        return self.road


async def require_permission(
    authorizer: IAuthorizer,
    identity: Identity,
    action: Action,
    repository: Repository,
    package: str | Extent | None,
) -> None:
    """
    Check that a caller may do this.

    :raises AuthenticationRequired: the caller is anonymous; credentials may help
    :raises Forbidden: the caller is known; the sentence says which rule decided
    """
    if not await authorizer.may(identity, action, repository, package):
        if identity.anonymous:
            raise AuthenticationRequired
        raise Forbidden(await authorizer.explain(identity, action, repository, package))


async def admit(
    authorizer: IAuthorizer,
    identity: Identity,
    repository: Repository,
    package: str,
    actor: Actor,
    *,
    check_open: Callable[[Repository], None],
    action: Action = Action.WRITE,
    folder: str | None = None,
    paths: Sequence[str] = (),
) -> Admitted:
    """
    Admit a caller's change that makes something of a package visible, by ``action``; ``paths`` are plain files of it.

    ``check_open`` raises what refuses such changes of the repository to all who have the permission. A plain file in no
    package's folder has the ``folder``: see L{IAuthorizer.check_push_rules}. Without the permission to publish,
    whatever else ``action`` wants, the push rules refuse.

    :raises AuthenticationRequired, Forbidden: the caller may not, or a push rule forbids it
    """
    await require_permission(authorizer, identity, action, repository, package)
    check_open(repository)
    await authorizer.check_push_rules(identity, Action.WRITE, repository, package, folder=folder)
    return _make(repository, actor, [*([package] if folder is None else []), *map(path_name, paths)])


async def admit_approver(
    authorizer: IAuthorizer,
    identity: Identity,
    repository: Repository,
    packages: Iterable[str],
    paths: Iterable[str],
    actor: Actor,
) -> Admitted:
    """
    Admit the approval of what is staged for a repository: packages, and files that belong to none.

    :raises Forbidden: the caller may not approve one of them, or a push rule forbids it
    """
    keys, files = sorted({*packages}), [*paths]
    questions: list[str | None] = [*keys, *([None] if files or not keys else [])]
    for each in questions:
        if not await authorizer.is_approver(identity, repository, each):
            raise Forbidden(NO_APPROVER.format(repository.path))
    for key in keys:
        await authorizer.check_push_rules(identity, Action.WRITE, repository, key)
    for folder, path in {f"{path.rpartition('/')[0]}/": path for path in files}.items():
        name = path.replace("/", ".")
        await authorizer.check_push_rules(identity, Action.WRITE, repository, name, folder=folder)
    return _make(repository, actor, [*keys, *map(path_name, files)])


def admit_server(road: Road, repository: Repository, actor: Actor = SYSTEM) -> Admitted:
    """Admit work of the server itself in a repository, on behalf of an actor."""
    return _make(repository, actor, None, road.value)


def join(admitted: Sequence[Admitted]) -> Admitted:
    """All of several changes of one actor in one repository; there is at least one."""
    first = admitted[0]
    assert all((each.authority_id, each.staged) == (first.authority_id, first.staged) for each in admitted)
    if any(each.names is None for each in admitted):
        return evolve(first, names=None)
    return evolve(first, names=frozenset(name for each in admitted for name in each.names or ()))


def _make(repository: Repository, actor: Actor, names: Iterable[str] | None, road: str = "") -> Admitted:
    return _Admitted(
        user_id=actor.user_id,
        name=actor.name,
        token_id=actor.token_id,
        address=actor.address,
        request_id=actor.request_id,
        authority_id=repository.authority.id,
        staged=repository.stage is not None,
        names=None if names is None else frozenset(names),
        road=road,
    )

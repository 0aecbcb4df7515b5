"""
The one permission check: what an identity may do, the sentences of refusals, push rules, approvers and delegation.

L{DecisionCache} decides what concerns a repository or a package; this adds what follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve
from zope.interface import implementer

from pkgrepo.auth.patterns import matching
from pkgrepo.auth.permissions.decision_cache import DecisionCache
from pkgrepo.auth.permissions.decisions import Question
from pkgrepo.auth.permissions.delegation import NEWCOMER, check_delegation
from pkgrepo.auth.permissions.grants import Grants, Places
from pkgrepo.auth.permissions.ownership import read_owner
from pkgrepo.auth.permissions.publishers import publishers_of, publishers_of_project
from pkgrepo.auth.permissions.rules import NO_REPOSITORY, ProjectViewer, Standing, read_standing
from pkgrepo.auth.tokens.limits import allows, covers
from pkgrepo.errors import Forbidden, NotFound
from pkgrepo.interfaces import IAuthorizer
from pkgrepo.model import (
    Action,
    Extent,
    Identity,
    Pipeline,
    Project,
    ProjectRole,
    Repository,
    SubjectKind,
    TokenKind,
    User,
    Visibility,
)
from pkgrepo.storage.catalog.people.grants import list_patterns, users_with_rights
from pkgrepo.storage.catalog.people.projects import list_project_members
from pkgrepo.storage.catalog.people.tokens import find_token
from pkgrepo.storage.catalog.server.repositories import find_repository

_VERBS = {
    Action.READ: "read",
    Action.WRITE: "publish",
    Action.OVERWRITE: "replace",
    Action.DELETE: "delete",
    Action.EDIT: "change the settings of",
    Action.ADMIN: "administer",
}

ROOT = "/"  # the folder of plain files that lie in no folder, which no project owns
MOST_KNOWN = 1000  # users in one list
CHANGES = (Action.WRITE, Action.OVERWRITE, Action.DELETE)
PERSONS = frozenset({TokenKind.PERSONAL, TokenKind.LOGIN})  # kinds of tokens that stand for a person


@implementer(IAuthorizer)
class Authorizer(DecisionCache):
    """What an identity may do in the server, and why not."""

    async def may_see(self, identity: Identity, repository: Repository) -> bool:
        """
        Whether the repository appears in lists: if the identity may read at least one package of it.

        A hidden one appears only if the identity may change its settings.
        """
        [seen] = await self.may_each(identity, [_visibility_check(repository)])
        return seen

    async def visible(self, identity: Identity, repositories: Sequence[Repository]) -> list[Repository]:
        """The repositories, of some, for which ``may_see`` holds."""
        seen = await self.may_each(identity, [_visibility_check(each) for each in repositories])
        return [each for each, sees in zip(repositories, seen, strict=True) if sees]

    async def may_use(self, identity: Identity, scope: str) -> bool:
        """
        Whether the identity may use a part of the server outside repositories; ``scope`` is one of ``SERVER_SCOPES``.

        A token needs the scope, and its owner the flag: admin for all, user manager for ``users``, system manager for
        ``system`` and ``metrics``, none for ``api:read`` and ``api:write``, which are about the own account.
        """
        limits = identity.limits
        if limits is not None and not (scope in limits.scopes and self._in_force(identity)):
            return False
        user = (await self.standing(identity)).user
        if user is None or not user.active:
            return False
        match scope:
            case "api:read" | "api:write":
                return True
            case "users":
                return user.admin or user.user_manager
            case "system" | "metrics":
                return user.admin or user.system_manager
            case _:
                return user.admin

    async def explain(
        self, identity: Identity, action: Action, repository: Repository, package: str | Extent | None = None
    ) -> str:
        """
        The sentence of a refusal: who, what, and the rule that decided.

        :raises NotFound: the repository was removed since the caller found it, so there is no rule to name
        """
        await self._check_exists(repository)
        [decision] = await self.decide_each(identity, [(action, repository, package)])
        who = repr(identity.username) if identity.username else "an anonymous caller"
        what = f"{package!r} in {repository.path}" if package and package is not Extent.SOME else repository.path
        return f"{who} may not {_VERBS[action]} {what}: {decision.reason}"

    async def owning_project(self, repository: Repository, package: str) -> Project | None:
        """The project that owns a package name, or None; the package need not exist."""
        return await self._catalog.look(read_owner, repository.authority, package)

    async def project_viewer(self, identity: Identity) -> ProjectViewer:
        """What the identity may see of projects."""
        return ProjectViewer(await self.may_use(identity, "system"), (await self.standing(identity)).roles)

    async def is_approver(
        self, identity: Identity, repository: Repository, package: str | None, *, folder: str | None = None
    ) -> bool:
        """
        Whether the identity may publish what is staged of a package, or with None what belongs to no package.

        It takes the action admin in the repository (see L{person_may}), or the role maintainer in the project that
        owns the package, or the ``folder`` of a plain file.
        """
        if await self.person_may(identity, Action.ADMIN, repository, package):
            return True
        if not await self.may(identity, Action.WRITE, repository, package):
            return False
        owned = package if folder is None else folder
        project = None if owned is None else await self.owning_project(repository, owned)
        return _has_role(await self.standing(identity), project, ProjectRole.MAINTAINER)

    async def person_may(
        self, identity: Identity, action: Action, repository: Repository, package: str | None = None
    ) -> bool:
        """
        Whether the identity may do this, or the person for whom a personal token stands.

        That is a token with which the package may be published, replaced and deleted, as that of a login in npm.
        """
        if await self.may(identity, action, repository, package):
            return True
        questions = [(each, repository, package) for each in CHANGES]
        if not all(await self.may_each(identity, questions)) or not await self._is_of_person(identity):
            return False
        return await self.may(evolve(identity, limits=None), action, repository, package)

    async def _is_of_person(self, identity: Identity) -> bool:
        """Whether the identity is by a token that stands for a person."""
        token = None if identity.token_id is None else await self._catalog.look(find_token, identity.token_id)
        return token is not None and token.kind in PERSONS

    async def known_people(self, identity: Identity, repository: Repository, package: str) -> Sequence[str]:
        """
        The names of users of whom the identity may know that they have more rights with a package than everybody.

        That is all of them, at most some 1,000, for an identity that administers the package (see L{person_may}), and
        the members of the project that owns it for one that may see these. What each may do is asked for each.
        """
        project = await self.owning_project(repository, package)
        if await self.person_may(identity, Action.ADMIN, repository, package):
            project_id = None if project is None else project.id
            place = repository.authority
            patterns = matching(await self._catalog.look(list_patterns), place.path.lower())
            found: Sequence[str] = await self._catalog.look(
                users_with_rights, place.id, patterns, project_id, limit=MOST_KNOWN
            )
            return found
        if project is None or not (await self.project_viewer(identity)).may_list_members(project):
            return ()
        if not await self.may_use(identity, "api:read"):  # which the API asks of tokens for the members
            changes = identity.limits and all(
                allows(identity.limits, each, repository.path, package) for each in CHANGES
            )
            if not changes or not await self._is_of_person(identity):
                return ()
        members = await self._catalog.look(list_project_members, project.id)
        return [each.subject_name for each in members if each.subject_kind is SubjectKind.USER]

    async def check_push_rules(
        self,
        identity: Identity,
        action: Action,
        repository: Repository,
        package: str | None = None,
        *,
        folder: str | None = None,
    ) -> None:
        """Check the rules of a repository for pushes. :raises Forbidden: one forbids it"""
        rules = repository.push_rules
        if rules.get("must_use_auth_token_for_push") and identity.via != "session":  # the console has no tokens
            token = None
            if identity.token_id is not None:
                token = await self._catalog.look(find_token, identity.token_id)
            if token is None or token.kind is TokenKind.LOGIN:
                raise Forbidden("pushes to this repository need an access token, not a password")
        if package is None:
            return  # what is pushed is not known yet: it is asked again with the name
        if folder is None:
            unowned_ok = action is Action.WRITE and rules.get("auto_create_projects", False)
            await self.check_project_member(identity, repository, package, unowned_ok=unowned_ok)
        else:
            await self._check_folder_member(identity, repository, package, folder)
        if action is not Action.DELETE and repository.stage is None:
            if rules.get("requires_approval"):
                await self._check_approver(identity, repository, package, folder)
            if action is Action.WRITE and identity.pipeline is not None:
                await self._check_publishes_directly(identity.pipeline, repository, package)

    async def _check_folder_member(self, identity: Identity, repository: Repository, name: str, folder: str) -> None:
        """
        Check membership for a plain file in no package's folder: where no project owns that, administrators change it.

        :raises Forbidden: the identity is no member of the owning project, or administers not the repository
        """
        unowned_ok = await self.person_may(identity, Action.ADMIN, repository, name)
        await self.check_project_member(identity, repository, folder, unowned_ok=unowned_ok)

    async def _check_approver(
        self, identity: Identity, repository: Repository, package: str, folder: str | None
    ) -> None:
        """Check that the identity may publish without an approval. :raises Forbidden: it may not"""
        if not await self.is_approver(identity, repository, package, folder=folder):
            raise Forbidden(
                f"{package!r} is published to {repository.path} by an approval (requires_approval): publish it to a "
                "stage, which is opened by: pkgrepo stage open, or by: npm stage publish"
            )

    async def _check_publishes_directly(self, pipeline: Pipeline, repository: Repository, package: str) -> None:
        """Check that a pipeline may publish a package without a stage. :raises Forbidden: it may not"""
        found = [*publishers_of(repository, pipeline)]
        if pipeline.projects:
            found += publishers_of_project(await self.owning_project(repository, package), pipeline)
        if not any(
            Action.WRITE in each["actions"] and covers(each["packages"], Action.WRITE, package) for each in found
        ):
            raise Forbidden(
                f"the publisher lets {pipeline.name} publish {package!r} to a stage alone, which is opened by: pkgrepo "
                "stage open, or by: npm stage publish"
            )

    async def check_project_member(
        self, identity: Identity, repository: Repository, package: str, *, unowned_ok: bool = False
    ) -> None:
        """Check membership in the owning project, where the rule is on. :raises Forbidden: the identity is no member"""
        if not repository.push_rules.get("must_be_project_member") or identity.pipeline is not None:
            return  # the editors of the repository have named the packages that a pipeline may publish
        standing = await self.standing(identity)
        if _is_admin(standing):
            return
        project = await self.owning_project(repository, package)
        if _has_role(standing, project, ProjectRole.DEVELOPER) or (project is None and unowned_ok):
            return
        await self._check_exists(repository)
        if project is not None:
            raise Forbidden(
                f"only members of project {project.key} may push {package!r} to {repository.path} "
                "(must_be_project_member); the role must be developer or above"
            )
        what = repr(package) if package != ROOT else "what lies in no folder"
        raise Forbidden(
            f"no project owns {what} in {repository.path}, and only members of the owning project may push "
            "(must_be_project_member); let an admin bind the name to a project"
        )

    async def check_delegation(
        self,
        giver: Identity,
        user: User | None,
        repositories: Iterable[Repository],
        *,
        grants: Places | None = None,
        default_actions: frozenset[Action] | None = None,
    ) -> None:
        """
        Check that ``giver`` may set other grants or default actions (None: unchanged) of a user.

        ``user`` None means a new user. ``repositories`` are all repositories.

        :raises Forbidden: with a repository and the actions that the giver does not hold there
        """
        before = Standing(user=NEWCOMER) if user is None else await self._catalog.look(read_standing, user.id)
        after = before
        if grants is not None:
            after = evolve(after, own=Grants.of_user(grants))
        if default_actions is not None and before.user is not None:
            after = evolve(after, user=evolve(before.user, default_actions=default_actions))
        check_delegation(giver, await self.standing(giver), before, after, repositories)

    async def check_group_delegation(
        self,
        giver: Identity,
        repositories: Iterable[Repository],
        before: Places,
        after: Places,
        roles: Mapping[int, ProjectRole] | None = None,
    ) -> None:
        """
        Check that ``giver`` may set other grants of a group, by what a new member of it would gain.

        ``roles`` are those that a new member would gain in projects.

        :raises Forbidden: with a repository and the actions that the giver does not hold there, or the role
        """
        was = Standing(user=NEWCOMER, groups=Grants.of_groups({"": before}))
        becomes = Standing(user=NEWCOMER, groups=Grants.of_groups({"": after}), roles=roles or {})
        check_delegation(giver, await self.standing(giver), was, becomes, repositories)

    async def _check_exists(self, repository: Repository) -> None:
        """
        Check that a repository that refuses a caller is still there: a purge deletes its grants, too.

        :raises NotFound: it was removed
        """
        if repository.id != NO_REPOSITORY and await self._catalog.look(find_repository, repository.uid) is None:
            raise NotFound("repository", repository.path)


def _visibility_check(repository: Repository) -> Question:
    """What must be allowed for a repository to appear in lists."""
    if repository.visibility is Visibility.HIDDEN:
        return Action.EDIT, repository, None
    return Action.READ, repository, Extent.SOME


def _is_admin(standing: Standing) -> bool:
    return standing.user is not None and standing.user.active and standing.user.admin


def _has_role(standing: Standing, project: Project | None, least: ProjectRole) -> bool:
    """Whether the role in a project is this one or a higher one."""
    role = standing.roles.get(project.id) if project else None
    return role is not None and role.rank >= least.rank

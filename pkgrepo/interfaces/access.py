"""Who calls, and what they may do."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

from zope.interface import Interface

if TYPE_CHECKING:
    from pkgrepo.model import Action, Extent, Identity, Repository


class IAuthenticator(Interface):
    """Authentication: credentials in any form that clients send -> identity."""

    def recall(header: bytes) -> Identity | None:
        """The identity behind a recently verified Authorization header, without waiting; else None."""

    def count_use(identity: Identity) -> None:
        """Count a further use of the token behind an identity that ``recall`` has returned, if there is one."""

    def authenticate(
        header: bytes | None, address: str, client: str = "", *, counted: bool = True, code: str = "", road: str = ""
    ) -> Awaitable[Identity]:
        """
        The identity behind an Authorization header value (None: anonymous) from an address; ``client`` is its
        User-Agent. ``counted`` records a use of the token; pass False when the same request is authenticated again.
        ``code`` is that of a second factor, which counts once. ``road`` are the method and path of the request.

        :raises SecondFactorRequired: a code is missing
        :raises AuthenticationFailed: wrong credentials; :raises TooManyAttempts: too many wrong ones recently
        """


class IAuthorizer(Interface):
    """The one permission check, used by all formats, the API and search."""

    def may_now(
        identity: Identity, action: Action, repository: Repository, package: str | Extent | None = None
    ) -> bool | None:
        """The result of ``may`` if it is known without waiting, else None."""

    def may(
        identity: Identity, action: Action, repository: Repository, package: str | Extent | None = None
    ) -> Awaitable[bool]:
        """
        Whether the identity may do this now. ``package`` (a key) restricts the question to one package.

        For ``Extent.SOME`` it is whether there may be a package with which it may: ask again for each that is shown.
        """

    def may_each(
        identity: Identity, questions: Sequence[tuple[Action, Repository, str | Extent | None]]
    ) -> Awaitable[list[bool]]:
        """The results of ``may`` for many questions, in order, with at most one query."""

    def knows_now(identity: Identity, repository: Repository) -> bool | None:
        """The result of ``knows`` if it is known without waiting, else None."""

    def knows(identity: Identity, repository: Repository) -> Awaitable[bool]:
        """Whether the identity may know that the repository exists."""

    def explain(
        identity: Identity, action: Action, repository: Repository, package: str | Extent | None = None
    ) -> Awaitable[str]:
        """
        The sentence of a refusal: who, what, and the rule that decided.

        :raises NotFound: the repository was removed since the caller found it
        """

    def is_approver(
        identity: Identity, repository: Repository, package: str | None, *, folder: str | None = None
    ) -> Awaitable[bool]:
        """
        Whether the identity may publish what is staged of a package, or with None what belongs to no package.

        It takes the action admin in the repository (see L{person_may}), or the role maintainer in the project that
        owns the package, or the ``folder`` of a plain file.
        """

    def person_may(
        identity: Identity, action: Action, repository: Repository, package: str | None = None
    ) -> Awaitable[bool]:
        """
        Whether the identity may do this, or the person for whom a personal token stands.

        That is a token with which the package may be published, replaced and deleted, as that of a login in npm.
        """

    def known_people(identity: Identity, repository: Repository, package: str) -> Awaitable[Sequence[str]]:
        """
        The names of users of whom the identity may know that they have more rights with a package than everybody.

        That is all of them, at most some 1,000, for an identity that administers the package (see L{person_may}), and
        the members of the project that owns it for one that may see these. What each may do is asked for each.
        """

    def check_push_rules(
        identity: Identity,
        action: Action,
        repository: Repository,
        package: str | None = None,
        *,
        folder: str | None = None,
    ) -> Awaitable[None]:
        """
        Check the push rules that all formats have, for a change that the caller has the permission for.

        Without ``package`` it is only whether the credentials suffice, before the name is known. With
        ``auto_create_projects``, a package that no project owns may be published: see L{claim_packages}.

        A plain file belongs to the package in whose folder it lies. In no package's folder it has the ``folder``, which
        ends with a slash, and ``package`` is the name by which permissions are asked. Who owns the folder decides, and
        where no project does, who administers the repository.

        :raises Forbidden: the caller used a password, or must be a member of the owning project
        :raises NotFound: the repository was removed since the caller found it
        """

    def check_project_member(
        identity: Identity, repository: Repository, package: str, *, unowned_ok: bool = False
    ) -> Awaitable[None]:
        """
        Check the rule ``must_be_project_member``, if the repository has it.

        :raises Forbidden: with the project that the caller must be a member of, or that there is none
        :raises NotFound: the repository was removed since the caller found it
        """

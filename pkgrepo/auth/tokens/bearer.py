"""
Short-lived signed tokens: what the token service hands to container clients.

A token is a JWT (RFC 7519) signed with HMAC-SHA-256 under a server secret. It says who asked (``sub``, the user's
public id), by which means (``am``, and ``tid`` for an access token), what was granted (``access``, in the shape
that container clients know), and the user's generation (``gen``) at that time.

=============================  ==================================================================================
what ends it                   how
=============================  ==================================================================================
time                           ``exp``, never after the end of the token that it was issued for
password change, deactivation  the user's generation grows, ``gen`` no longer matches
access token revoked, changed  the owner's generation grows
server secret replaced         ``kid`` names a secret that is gone
=============================  ==================================================================================

What a token opens depends on whether it was asked for with a scope (``scoped``), whoever asked:

=============  ==================================  ===========================================================
asked for      in container repositories           elsewhere
=============  ==================================  ===========================================================
with scopes    what ``access`` says, of a word no  packages: what ``access`` says; management API: garbage
               action that the access token        collection and statistics of container repositories, for
               behind it lacks (``may``)           whoever may run them (L{behind})
without        nothing; a client asks for another  what the credentials behind it open, except making tokens
               token then                          and changing passwords
=============  ==================================  ===========================================================
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import jwt
from attrs import Factory, evolve, field, frozen

from pkgrepo.errors import AuthenticationFailed
from pkgrepo.interfaces import IAuthorizer, ICatalog
from pkgrepo.model import Action, Identity, Repository, RepositoryScope, TokenLimits
from pkgrepo.storage.catalog.people.identity import get_user
from pkgrepo.storage.catalog.people.tokens import find_token

from .limits import NOWHERE, SERVER_SCOPES, allows, literal

ALGORITHM = "HS256"
CATALOG_GRANT = "registry:catalog"  # among the scopes of a token that is good for the list of images
SKEW_S = 60  # seconds that the clocks of two servers may differ
LIFETIME_S = 900  # seconds; containers' clients fetch a new one when it ends

# The words of container clients' scopes, and what they cap.
WORDS: Mapping[str, frozenset[Action]] = {
    "pull": frozenset({Action.READ}),
    "push": frozenset({Action.WRITE, Action.OVERWRITE}),
    "delete": frozenset({Action.DELETE}),
}
_ASKED = {"pull": Action.READ, "push": Action.WRITE, "delete": Action.DELETE}


@frozen
class Access:
    """
    One granted scope: ``name`` as the client wrote it, and the package that it means.

    ``repository`` is ``storage/name``, ``package`` the package's key (empty: the repository as a whole), ``words``
    are keys of ``WORDS``.
    """

    name: str
    repository: str
    package: str
    words: tuple[str, ...]


@frozen
class SigningKeys:
    """Secrets by key id; new tokens are signed with ``current``. Keep the old one for as long as a token lives."""

    current: str
    secrets: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def single(cls, secret: str) -> SigningKeys:
        """One secret, of at least 32 random bytes in any text form."""
        key = hashlib.sha256(b"bearer" + secret.encode()).digest()
        kid = hashlib.sha256(key).hexdigest()[:8]
        return cls(current=kid, secrets={kid: key})


@frozen
class IssuedToken:
    """A new bearer token, for the answer of the token service."""

    text: str = field(repr=False)
    issued_at: datetime
    expires_in: int
    access: tuple[Access, ...]


@frozen
class Claims:
    """
    What a genuine, unexpired token says. ``user_uid`` is empty for an anonymous caller's.

    ``limits`` are those of the token alone; the access token behind it (``token_id``) narrows them.
    """

    user_uid: str
    token_id: int | None
    generation: int
    scoped: bool
    limits: TokenLimits = Factory(TokenLimits)


class BearerTokens:
    """Issues and reads bearer tokens; ``clock`` tells seconds since the epoch."""

    def __init__(
        self,
        catalog: ICatalog,
        keys: SigningKeys,
        *,
        service: str = "pkgrepo",
        lifetime_s: int = LIFETIME_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._catalog = catalog
        self._keys = keys
        self._service = service
        self._lifetime_s = lifetime_s
        self._clock = clock

    def issue(
        self, identity: Identity, access: Sequence[Access], *, scoped: bool = True, catalog: bool = False
    ) -> IssuedToken:
        """
        A token for an authenticated (or anonymous) caller.

        ``access`` must be what the caller may do now (see ``allowed_words``); with ``catalog`` it is also good for the
        list of images, which shows its bearer what its owner may see. ``scoped`` says whether the caller asked for any
        scope. A scoped bearer token gets none that opens more than itself.

        :raises NotFound: the user was removed a moment ago
        """
        now = int(self._clock())
        expires = now + self._lifetime_s
        limits = identity.limits
        if limits is not None and limits.expires_at is not None:
            # A bearer token's own limits end later than it says, and nobody must live on that difference.
            grace = SKEW_S if identity.via == "bearer" else 0
            expires = min(expires, int(limits.expires_at.timestamp()) - grace)
        claims: dict[str, Any] = {
            "iss": self._service,
            "aud": self._service,
            "sub": "",
            "iat": now,
            "exp": expires,
            "access": [
                {
                    "type": "repository",
                    "name": each.name,
                    "actions": list(each.words),
                    "repository": each.repository,
                    "package": each.package,
                    "may": sorted(_capped(each, limits)),
                }
                for each in access
            ],
            "am": "anonymous",
            "gen": identity.generation,
            "jti": secrets.token_hex(8),  # two clients that ask within a second are told apart
            "scoped": scoped or identity.scoped is True,
        }
        if catalog and (identity.scoped is not True or (limits is not None and CATALOG_GRANT in limits.scopes)):
            claims["access"].append({"type": "registry", "name": "catalog", "actions": ["*"]})
        if identity.user_id is not None:
            claims["sub"] = self._catalog.look(get_user, identity.user_id).uid
            claims["am"] = "password" if identity.token_id is None else "token"
            if identity.token_id is not None:
                claims["tid"] = identity.token_id
        text = jwt.encode(
            claims, self._keys.secrets[self._keys.current], ALGORITHM, headers={"kid": self._keys.current}
        )
        return IssuedToken(
            text=text,
            issued_at=datetime.fromtimestamp(now, UTC),
            expires_in=max(0, expires - now),
            access=tuple(access),
        )

    def read(self, text: str) -> Claims:
        """
        What a token says, once its signature and its times are right; whether its user still stands is not asked.

        :raises AuthenticationFailed: not ours, tampered with, or expired
        """
        try:
            key = self._keys.secrets[jwt.get_unverified_header(text)["kid"]]
            claims = jwt.decode(
                text,
                key,
                algorithms=[ALGORITHM],  # never what the token itself names: RFC 8725 3.1
                audience=self._service,
                issuer=self._service,
                options={
                    "require": ["sub", "iat", "exp", "access", "gen"],
                    "verify_exp": False,  # by our clock, below
                    "verify_iat": False,
                },
            )
        except (jwt.PyJWTError, KeyError):
            raise AuthenticationFailed from None
        now = self._clock()
        if claims["exp"] + SKEW_S <= now or claims["iat"] - SKEW_S > now:
            raise AuthenticationFailed
        return _claims(claims)


def behind(catalog: ICatalog, identity: Identity) -> Identity:
    """The caller of a bearer token without the bounds of that; those of the access token behind it stay."""
    if identity.scoped is None:
        return identity
    if not identity.scoped:
        return evolve(identity, scoped=None)
    token = None if identity.token_id is None else catalog.look(find_token, identity.token_id)
    return evolve(identity, limits=None if token is None else token.limits)


def allowed_words(
    authorizer: IAuthorizer, identity: Identity, repository: Repository, package: str, asked: Iterable[str]
) -> tuple[str, ...]:
    """
    The subset of a scope's words that the caller may have, each once, in the order of ``WORDS``; ``*`` asks for all.

    Never an error: docker asks for ``push,pull`` even where its user may only pull.
    """
    wanted = set(asked)
    return tuple(
        word
        for word, action in _ASKED.items()
        if (word in wanted or "*" in wanted) and authorizer.may(identity, action, repository, package)
    )


def _capped(access: Access, limits: TokenLimits | None) -> frozenset[Action]:
    """What the words of a scope stand for, without what the caller's own token does not let pass."""
    actions = frozenset[Action]().union(*(WORDS[word] for word in access.words))
    if limits is None:
        return actions
    return frozenset(each for each in actions if allows(limits, each, access.repository, access.package))


def _claims(claims: Mapping[str, Any]) -> Claims:
    expires_at = datetime.fromtimestamp(claims["exp"] + SKEW_S, UTC)
    scoped = claims.get("scoped") is not False
    if not scoped:
        limits = TokenLimits(scopes=SERVER_SCOPES, expires_at=expires_at)
    else:
        granted = [each for each in claims["access"] if each["type"] == "repository"]
        limits = TokenLimits(
            scopes=frozenset({CATALOG_GRANT}) if len(granted) < len(claims["access"]) else frozenset(),
            repositories=tuple(map(_scope, granted)) or (NOWHERE,),  # none would mean everywhere
            expires_at=expires_at,
        )
    return Claims(
        user_uid=claims["sub"],
        token_id=claims.get("tid"),
        generation=claims["gen"],
        scoped=scoped,
        limits=limits,
    )


def _scope(access: Mapping[str, Any]) -> RepositoryScope:
    return RepositoryScope(
        repository=literal(access["repository"]),
        actions=frozenset(Action(each) for each in access.get("may", ())),
        packages=(literal(access["package"]),) if access["package"] else (),
    )

"""
Bearer tokens: short-lived signed tokens that the token service issues to container clients.

A token is a JWT (RFC 7519) signed with HMAC-SHA-256 under a server secret. It holds the user's public id
(``sub``), the means of authentication (``am``, and ``tid`` for an access token), the granted scopes (``access``, in the
shape that container clients know), and the user's generation at that time (``gen``).

=============================  ==================================================================================
what invalidates it            how
=============================  ==================================================================================
time                           ``exp``, never later than that of the access token behind it
password change, deactivation  the user's generation grows, ``gen`` no longer matches
access token revoked, changed  the owner's generation grows
server secret replaced         ``kid`` names an unknown secret
=============================  ==================================================================================

Its rights depend on whether the client requested a scope (``scoped``):

=============  ==================================  ===========================================================
requested      in container repositories           elsewhere
=============  ==================================  ===========================================================
with scopes    ``access``, capped by the actions   packages: ``access``; management API: garbage collection
               of the access token behind it       and statistics of container repositories, if the owner may
               (``may``)                           run them (L{behind})
without        nothing; the client requests        the rights of the credentials behind it, except creating
               another token                       tokens and changing passwords
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
from pkgrepo.interfaces import IAuthorizer, ICatalog, Reader
from pkgrepo.model import Action, Identity, Repository, RepositoryScope, TokenLimits
from pkgrepo.storage.catalog.people.tokens import find_token
from pkgrepo.storage.catalog.people.users import get_user

from .limits import NOWHERE, SERVER_SCOPES, allows, literal

ALGORITHM = "HS256"
CATALOG_GRANT = "registry:catalog"  # the scope of a token that may list images
SKEW_S = 60  # seconds of clock difference between two servers
LIFETIME_S = 900  # seconds; container clients fetch a new one then

# The words of container clients' scopes, and the actions that they allow.
WORDS: Mapping[str, frozenset[Action]] = {
    "pull": frozenset({Action.READ}),
    "push": frozenset({Action.WRITE, Action.OVERWRITE}),
    "delete": frozenset({Action.DELETE}),
}
_ASKED = {"pull": Action.READ, "push": Action.WRITE, "delete": Action.DELETE}


@frozen
class Access:
    """
    One granted scope: ``name`` as the client wrote it, and the package it names.

    ``repository`` is ``storage/name``, ``package`` the package's key (empty: the repository as a whole), ``words``
    are keys of ``WORDS``.
    """

    name: str
    repository: str
    package: str
    words: tuple[str, ...]


@frozen
class SigningKeys:
    """Secrets by key id; new tokens are signed with ``current``. Keep an old one for the lifetime of a token."""

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
    """A new bearer token, for the response of the token service."""

    text: str = field(repr=False)
    issued_at: datetime
    expires_in: int
    access: tuple[Access, ...]


@frozen
class Claims:
    """
    The claims of a valid, unexpired token. ``user_uid`` is empty for an anonymous caller.

    ``limits`` are those of the bearer token; the limits of the access token behind it (``token_id``) apply as well.
    """

    user_uid: str
    token_id: int | None
    generation: int
    scoped: bool
    limits: TokenLimits = Factory(TokenLimits)


class BearerTokens:
    """Issues and reads bearer tokens; ``clock`` returns seconds since the epoch."""

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

    async def issue(
        self, identity: Identity, access: Sequence[Access], *, scoped: bool = True, catalog: bool = False
    ) -> IssuedToken:
        """
        Issue a token for an authenticated or anonymous caller.

        ``access`` must be what the caller may do now (see ``allowed_words``). With ``catalog`` the token may also list
        images, as far as its owner may see them. ``scoped`` says whether the caller requested any scope. A caller with
        a scoped bearer token gets no token with more rights.

        :raises NotFound: the user was removed meanwhile
        """
        now = int(self._clock())
        expires = now + self._lifetime_s
        limits = identity.limits
        if limits is not None and limits.expires_at is not None:
            # The limits of a bearer token may end after its exp; the new token must not.
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
            "jti": secrets.token_hex(8),  # different for two requests in one second
            "scoped": scoped or identity.scoped is True,
        }
        if catalog and (identity.scoped is not True or (limits is not None and CATALOG_GRANT in limits.scopes)):
            claims["access"].append({"type": "registry", "name": "catalog", "actions": ["*"]})
        if identity.user_id is not None:
            claims["sub"] = (await self._catalog.look(get_user, identity.user_id)).uid
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
        Verify signature and times of a token and return its claims. It does not check the user.

        :raises AuthenticationFailed: not signed by us, or expired
        """
        try:
            key = self._keys.secrets[jwt.get_unverified_header(text)["kid"]]
            claims = jwt.decode(
                text,
                key,
                algorithms=[ALGORITHM],  # RFC 8725 3.1: never the algorithm that the token names
                audience=self._service,
                issuer=self._service,
                options={
                    "require": ["sub", "iat", "exp", "access", "gen"],
                    "verify_exp": False,  # checked below, with our clock
                    "verify_iat": False,
                },
            )
        except (jwt.PyJWTError, KeyError):
            raise AuthenticationFailed from None
        now = self._clock()
        if claims["exp"] + SKEW_S <= now or claims["iat"] - SKEW_S > now:
            raise AuthenticationFailed
        return _claims(claims)


async def unbound(catalog: ICatalog, identity: Identity) -> Identity:
    """Return the identity behind a bearer token; the catalog is only asked about bearer tokens."""
    return identity if identity.scoped is None else await catalog.look(behind, identity)


def behind(reader: Reader, identity: Identity) -> Identity:
    """The caller without the limits of a bearer token; the limits of the access token behind it stay."""
    if identity.scoped is None:
        return identity
    if not identity.scoped:
        return evolve(identity, scoped=None)
    token = None if identity.token_id is None else find_token(reader, identity.token_id)
    return evolve(identity, limits=None if token is None else token.limits)


async def allowed_words(
    authorizer: IAuthorizer, identity: Identity, repository: Repository, package: str, asked: Iterable[str]
) -> tuple[str, ...]:
    """
    The words of a scope that the caller may have, each once, in the order of ``WORDS``; ``*`` requests all.

    Never an error: docker requests ``push,pull`` even if the user may only pull.
    """
    wanted = set(asked)
    words = [word for word in _ASKED if word in wanted or "*" in wanted]
    allowed = await authorizer.may_each(identity, [(_ASKED[word], repository, package) for word in words])
    return tuple(word for word, may in zip(words, allowed, strict=True) if may)


def _capped(access: Access, limits: TokenLimits | None) -> frozenset[Action]:
    """The actions of a scope's words, as far as the limits of the caller's token allow them."""
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
            repositories=tuple(map(_scope, granted)) or (NOWHERE,),  # an empty tuple would mean everywhere
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

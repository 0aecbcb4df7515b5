"""Whether a caller authenticated with an access token, which rules about pushes ask."""

from __future__ import annotations

from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Identity, TokenKind
from pkgrepo.storage.catalog.people.tokens import find_token


async def came_with_token(catalog: ICatalog, identity: Identity) -> bool:
    """Whether the caller authenticated with an access token; the refresh token of a login does not count."""
    if identity.token_id is None:
        return False
    token = await catalog.look(find_token, identity.token_id)
    return token is not None and token.kind is not TokenKind.LOGIN

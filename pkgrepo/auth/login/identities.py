"""The identity of a user whose credentials are verified."""

from __future__ import annotations

from pkgrepo.model import Identity, Token, User


def identity_of(user: User, *, via: str, token: Token | None = None, session_id: int | None = None) -> Identity:
    """The identity of a user; ``via`` is the means of authentication."""
    return Identity(
        user_id=user.id,
        username=user.username,
        admin=user.admin,
        user_manager=user.user_manager,
        system_manager=user.system_manager,
        via=via,
        token_id=token.id if token else None,
        limits=token.limits if token else None,
        generation=user.generation,
        session_id=session_id,
    )

"""Access tokens that a program gets; no command takes one as an argument, because other users can see that."""

from __future__ import annotations

from pathlib import Path

from pkgrepo.errors import Invalid


def read_token(path: Path) -> str:
    """The token in a file. :raises Invalid: the file holds no token; :raises OSError: the file cannot be read"""
    try:
        return check_token(path.read_text().strip(), str(path))
    except UnicodeDecodeError:
        raise Invalid(f"there is no token in {path}") from None


def check_token(token: str, where: str) -> str:
    """The token. :raises Invalid: it is empty, or has characters that cannot be sent"""
    if not token:
        raise Invalid(f"there is no token in {where}")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise Invalid("the token has characters that no token has")
    return token

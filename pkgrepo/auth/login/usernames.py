"""The grammar of user names."""

from __future__ import annotations

import re

from pkgrepo.errors import Invalid

_USERNAME = re.compile(r"[a-z0-9][a-z0-9._-]{2,31}", re.ASCII | re.IGNORECASE)


def check_username(text: str) -> str:
    """
    The name, if it may be one: 3 to 32 letters, digits, dots, underscores or hyphens, beginning with one of the
    first two. Case is kept, and does not tell names apart.

    :raises Invalid: it may not
    """
    if not _USERNAME.fullmatch(text):
        raise Invalid(
            "a user name has 3 to 32 letters, digits, '.', '_' or '-', and begins with a letter or digit", "/username"
        )
    return text

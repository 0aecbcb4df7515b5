"""The grammar of user names."""

from __future__ import annotations

import re

from pkgrepo.errors import Invalid

_USERNAME = re.compile(r"[a-z0-9][a-z0-9._-]{2,31}", re.ASCII | re.IGNORECASE)


def check_username(text: str) -> str:
    """
    Check a user name: 3 to 32 letters, digits, dots, underscores or hyphens, beginning with a letter or digit.

    Case is kept, but names that differ only by case are equal.

    :raises Invalid: it is not a user name
    """
    if not _USERNAME.fullmatch(text):
        raise Invalid(
            "a user name has 3 to 32 letters, digits, '.', '_' or '-', and begins with a letter or digit", "/username"
        )
    return text

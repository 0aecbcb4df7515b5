"""Texts of configuration files without the secrets in them."""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "********"

# What stands behind the name of a key that is for secrets, in each syntax; a name is part of a longer one.
_SECRET: Final = re.compile(
    r"""(?ix)
    ( (?: token | passwd | password | secret | api_?key | _auth | "auth" )
      [\w.-]* ["']? [ \t]* (?: [=:] | [ \t] ) [ \t]* ["']? )
    ( (?! true\b | false\b | null\b | \[ | \{ ) [^\s"'<>]+ )
    | ( < (?: password | passphrase ) > ) ( [^<]+ )
    | () ( \b pkgr_\w+ )
    | ( :// [^\s/:@]* : ) ( [^\s/@]+ ) (?= @ )
    """
)


def masked(text: str, *secrets: str) -> str:
    """The text without ``secrets``, and without what looks like one: what is behind such a key, and in addresses."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, HIDDEN)
    return _SECRET.sub(lambda found: f"{found[1] or found[3] or found[7] or ''}{HIDDEN}", text)

"""The absolute URLs of the links of a page, of which most differ in their last parts only."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.outbound.urls import MOST_CHARACTERS, parse_url, resolve_reference

# An absolute URL that is canonical if its beginning is: no dot segments, no user, no query, no fragment.
_PLAIN: Final = re.compile(r"(https?://[^/?#@\\\s]+)((?:/(?!\.\.?(?:/|$))[A-Za-z0-9._~!$&'()*+,;=:@%-]*)+)")
_MOST: Final = 64  # beginnings in memory; pages have one or two


class Links:
    """Resolves the links of a page with this base URL."""

    def __init__(self, base: str) -> None:
        self._base = parse_url(base)
        self._beginnings: dict[str, str | None] = {}

    def find(self, reference: str) -> str | None:
        """The absolute URL of a link; None if it has none that can be fetched."""
        plain = _PLAIN.fullmatch(reference) if len(reference) <= MOST_CHARACTERS else None
        if plain is not None:
            beginning = self._find_beginning(plain[1])
            return None if beginning is None else beginning + plain[2]
        try:
            return resolve_reference(self._base, reference.strip().encode().decode("latin-1")).text
        except ValueError:
            return None

    def _find_beginning(self, text: str) -> str | None:
        """Scheme, host and port of a URL in their canonical form."""
        if text not in self._beginnings:
            if len(self._beginnings) >= _MOST:
                self._beginnings.clear()
            try:
                self._beginnings[text] = parse_url(text).text.removesuffix("/")
            except ValueError:
                self._beginnings[text] = None
        return self._beginnings[text]

"""
What a page was made of, by ETags that its forms bring back: a form takes back nothing that others changed meanwhile.

Only operations of the API that look at If-Match (RFC 9110 section 13.1.1) look at them.
"""

from __future__ import annotations

from typing import Final, Self

from attrs import Factory, define

from pkgrepo.errors import Conflict
from pkgrepo.management.api.schema import edited_part, tag_of
from pkgrepo.web.rendering.languages import marked

CHANGED: Final = marked(
    "this was changed since the page was opened, so nothing was done: open the page anew to see the change,"
    " or send the form again to put yours in its place"
)


@define
class Preconditions:
    """
    ETags by addresses in the API: those that a form ``brought``, and those of what was ``read`` for this request.

    They are without the part that changes with what the server measures.
    """

    _brought: dict[str, str] = Factory(dict)
    _read: dict[str, str] = Factory(dict)

    @classmethod
    def brought(cls, text: str) -> Self:
        """Those of a form, from the text that L{text} returned for its page."""
        return cls(dict(each.partition("=")[::2] for each in text.split()))

    @property
    def text(self) -> str:
        """What the forms of a page bring back, one that is shown again what its own form brought."""
        return " ".join("=".join(each) for each in {**self._read, **self._brought}.items())

    def if_match(self, address: str) -> bytes | None:
        """What is to be changed has to have this ETag: the one of the form, else the one that was read."""
        tag = self._brought.get(address) or self._read.get(address)
        return None if tag is None else b'"%s"' % tag.encode()

    def note(self, address: str, value: object) -> None:
        """Something was read."""
        self._read[address] = edited_part(tag_of(value))

    def forget(self, address: str) -> None:
        """Forget what this request has changed itself, and what contains that: it is not as it was known."""
        for known in (self._brought, self._read):
            for each in [each for each in known if f"{address}/".startswith(f"{each}/")]:
                del known[each]

    def merge(self) -> None:
        """The form changes only a part of what was read now; what others have changed since its page stays."""
        self._brought.clear()

    def check(self) -> None:
        """
        Compare what was read with what the form brought, before the first of several changes.

        :raises Conflict: something has changed
        """
        if any(self._brought.get(address, tag) != tag for address, tag in self._read.items()):
            raise self.refusal()

    def refusal(self) -> Conflict:
        """The error of a form that is not taken; the page that is shown again knows what is there now."""
        self._brought.clear()
        return Conflict(CHANGED)

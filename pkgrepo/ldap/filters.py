"""
Search filters of the settings (RFC 4515), with places for what a search is about.

A filter is parsed once, and values are put into its tree: no value is ever parsed, so that none can change a filter,
whatever characters it has.

==============  ==================================================================================================
place           value
==============  ==================================================================================================
``{username}``  in the filter of people: the name that somebody typed; in that of groups: the name of the account
``{dn}``        in the filter of groups: the distinguished name of the person, or of a group in groups
==============  ==================================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ldaptor import ldapfilter
from ldaptor.protocols import pureldap

from pkgrepo.errors import Invalid

LONGEST: Final = 4096  # characters
_PLACE: Final = re.compile(r"\{(\w*)\}")
_ESCAPED_BYTE: Final = re.compile(r"\\[89a-fA-F][0-9a-fA-F]")


class Filter:
    """
    A filter with places.

    :raises Invalid: it is no filter, has other places than ``places``, or none of them
    """

    def __init__(self, text: str, *places: str) -> None:
        found = set(_PLACE.findall(text))
        if not found or not found <= set(places):
            wanted = " or ".join(f"{{{each}}}" for each in places)
            raise Invalid(f"must be a filter with {wanted} in it, and no other braces")
        if len(text) > LONGEST or _ESCAPED_BYTE.search(text):
            # ldaptor takes each of these bytes for a character
            raise Invalid("must have characters beyond ASCII as they are, and at most 4096 in all")
        try:
            self._tree = ldapfilter.parseFilter(text)
        except (ldapfilter.InvalidLDAPFilter, RecursionError) as error:
            where = f" at character {error.loc + 1}" if isinstance(error, ldapfilter.InvalidLDAPFilter) else ""
            raise Invalid(f"must be an LDAP filter in parentheses (RFC 4515){where}") from None

    def fill(self, **values: bytes) -> Any:
        """The filter with these values in its places."""
        return _filled(self._tree, values)

    def anybody(self) -> Any:
        """The filter that holds for whatever value may be in its places."""
        return _filled(self._tree, None)


def equal(attribute: str, value: bytes) -> Any:
    """The filter of entries with this value."""
    return pureldap.LDAPFilter_equalityMatch(
        attributeDesc=pureldap.LDAPAttributeDescription(attribute), assertionValue=pureldap.LDAPAssertionValue(value)
    )


def every(*filters: Any) -> Any:
    """The filter of entries that all of these filters hold for."""
    return pureldap.LDAPFilter_and(list(filters))


def either(*filters: Any) -> Any:
    """The filter of entries that one of these filters holds for."""
    return pureldap.LDAPFilter_or(list(filters))


def _filled(node: Any, values: Mapping[str, bytes] | None) -> Any:
    """A copy of a part of a filter; without ``values``, what has a place becomes the presence of its attribute."""
    match node:
        case pureldap.LDAPFilter_and() | pureldap.LDAPFilter_or():
            return type(node)([_filled(each, values) for each in node])
        case pureldap.LDAPFilter_not():
            return pureldap.LDAPFilter_not(_filled(node.value, values))
        case pureldap.LDAPFilter_present():
            return node
    attribute, texts = _parts(node)
    if values is None and attribute is not None and any(map(_has_place, texts)):
        return pureldap.LDAPFilter_present(attribute)
    return _with_values(node, [_put(each, values or {}) for each in texts])


def _parts(node: Any) -> tuple[str | None, list[str]]:
    """The attribute of a filter about one, if it has any, and its values as they are written."""
    match node:
        case pureldap.LDAPFilter_substrings():
            return node.type, [each.value for each in node.substrings]
        case pureldap.LDAPFilter_extensibleMatch():
            return None if node.type is None else node.type.value, [node.matchValue.value]
    return node.attributeDesc.value, [node.assertionValue.value]


def _with_values(node: Any, values: Sequence[bytes]) -> Any:
    """A copy of a filter about one attribute, with other values."""
    match node:
        case pureldap.LDAPFilter_substrings():
            parts = [type(each)(value) for each, value in zip(node.substrings, values, strict=True)]
            return pureldap.LDAPFilter_substrings(type=node.type, substrings=parts)
        case pureldap.LDAPFilter_extensibleMatch():
            return pureldap.LDAPFilter_extensibleMatch(
                matchingRule=node.matchingRule,
                type=node.type,
                matchValue=values[0],
                # RFC 4511 section 5.1: what is false by default is left out
                dnAttributes=node.dnAttributes if node.dnAttributes is not None and node.dnAttributes.value else None,
            )
    return type(node)(attributeDesc=node.attributeDesc, assertionValue=pureldap.LDAPAssertionValue(values[0]))


def _has_place(text: str) -> bool:
    return _PLACE.search(text) is not None


def _put(text: str, values: Mapping[str, bytes]) -> bytes:
    """A value of the filter as it is sent, with these in its places."""
    parts = _PLACE.split(text)
    return b"".join(values.get(each, b"") if index % 2 else each.encode() for index, each in enumerate(parts))

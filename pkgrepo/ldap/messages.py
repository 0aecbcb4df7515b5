"""
Messages of LDAP (RFC 4511 section 4.1.1): requests by ldaptor, and responses that are checked before it reads them.

ldaptor's decoder copies the rest of a message for each element in it, descends without a limit, and reads numbers of
any length. So L{next_size} accepts only the elements that responses have, few and not deep, in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from ldaptor.protocols import pureber, pureldap

SUCCESS: Final = 0
SIZE_LIMIT: Final = 4  # the result of a search that found more than it was asked for
MOST_MESSAGE: Final = 64 * 1024  # bytes; entries have only the few attributes that were asked for
MOST_ELEMENTS: Final = 2000  # of a message; the decoder takes some 10 ms for as many in 64 KiB
DEEPEST: Final = 8
LONGEST_NUMBER: Final = 5  # bytes: RFC 4511 section 4.1.1, at most 2**31 - 1, and ldaptor's own are signed

_SEQUENCE: Final = 0x30
_NUMBERS: Final = frozenset({0x01, 0x02, 0x0A})
# Texts, lists, controls; referral, SASL credentials, name and value of an extended response; the responses themselves:
# bind, entry, end of a search, reference, extended.
_EXPECTED: Final = frozenset({0x04, 0x30, 0x31, 0xA0, 0xA3, 0x87, 0x8A, 0x8B, 0x61, 0x64, 0x65, 0x73, 0x78})
_CONSTRUCTED: Final = 0x20

_DECODER: Final = pureldap.LDAPBERDecoderContext_TopLevel(
    inherit=pureldap.LDAPBERDecoderContext_LDAPMessage(
        fallback=pureldap.LDAPBERDecoderContext(fallback=pureber.BERDecoderContext()),
        inherit=pureldap.LDAPBERDecoderContext(fallback=pureber.BERDecoderContext()),
    )
)
# What the decoder raises for elements in a wrong order or number.
_WRONG: Final = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    pureber.BERException,
    pureber.BERExceptionInsufficientData,
)


class Unusable(Exception):  # noqa: N818 - named for what happened
    """A server cannot be used, such as one that sends what is no response; the text is a clause about "it"."""


@frozen
class Entry:
    """An entry that was found; attributes by their names in lower case, with all values."""

    dn: bytes
    attributes: Mapping[str, Sequence[bytes]]

    def values(self, attribute: str) -> Sequence[bytes]:
        """The values of an attribute; none if there are none."""
        return self.attributes.get(attribute.lower(), ())

    def text(self, attribute: str) -> str:
        """The first value of an attribute that is a text; empty if there is none."""
        for each in self.values(attribute):
            try:
                return each.decode("utf-8")
            except UnicodeDecodeError:
                continue
        return ""


@frozen
class Result:
    """The end of an operation (RFC 4511 section 4.1.9); ``text`` is for those who read the log."""

    code: int
    text: str
    name: bytes | None = None


Response = Entry | Result | None


def request(number: int, operation: Any) -> bytes:
    """The bytes of a message with this number."""
    wire: bytes = pureldap.LDAPMessage(operation, id=number).toWire()
    return wire


def bind(dn: str | bytes, password: str) -> Any:
    """The operation that logs in under a name (RFC 4511 section 4.2), by a password that is not empty, or without."""
    return pureldap.LDAPBindRequest(dn=dn, auth=password)


def search(base: str, asked: Any, attributes: Sequence[str], most: int) -> Any:
    """The operation that finds up to ``most`` entries below a base by a filter (RFC 4511 section 4.5)."""
    return pureldap.LDAPSearchRequest(baseObject=base, filter=asked, attributes=attributes, sizeLimit=most)


def start_tls() -> Any:
    """The operation that asks for TLS (RFC 4511 section 4.14)."""
    return pureldap.LDAPStartTLSRequest()


def next_size(data: bytes) -> int | None:
    """
    The length of the message at the beginning of ``data``; None if it is not there as a whole.

    :raises Unusable: it is no response, or too large
    """
    head = _head(data, 0, len(data))
    if head is None:
        if data[:1] not in (b"", bytes((_SEQUENCE,))):
            raise Unusable("it does not answer in LDAP")
        return None
    tag, start, end = head
    if tag != _SEQUENCE:
        raise Unusable("it does not answer in LDAP")
    if end > MOST_MESSAGE:
        raise Unusable(f"it sends a message of more than {MOST_MESSAGE} bytes")
    if end > len(data):
        return None
    _check(data, start, end)
    return end


def _check(data: bytes, start: int, end: int) -> None:
    count, ends = 0, [end]
    while ends:
        if start == ends[-1]:
            ends.pop()
            continue
        head = _head(data, start, ends[-1])
        count += 1
        if head is None or head[2] > ends[-1] or count > MOST_ELEMENTS or len(ends) > DEEPEST:
            raise Unusable("it sends a message that is no response, or has too many parts")
        tag, start, following = head
        if tag in _NUMBERS:
            if not 0 < following - start <= LONGEST_NUMBER:
                raise Unusable("it sends a number that is too long")
        elif tag not in _EXPECTED:
            raise Unusable("it sends a message that is no response to what was asked")
        if tag & _CONSTRUCTED:
            ends.append(following)
        else:
            start = following


def _head(data: bytes, start: int, limit: int) -> tuple[int, int, int] | None:
    """Tag, and where the content of an element begins and ends (RFC 4511 section 5.1); None if it is cut off."""
    if start + 2 > limit:
        return None
    tag, size, begin = data[start], data[start + 1], start + 2
    if size & 0x80:
        count = size & 0x7F
        if not 0 < count <= 4:
            raise Unusable("it does not answer in LDAP")
        if begin + count > limit:
            return None
        size = int.from_bytes(data[begin : begin + count], "big")
        begin += count
    return tag, begin, begin + size


def read(message: bytes) -> tuple[int, Response]:
    """
    The number of a message of ``next_size``, and what it says; None: a reference to another server, which is not used.

    :raises Unusable: it is no response
    """
    try:
        decoded, _ = pureber.berDecodeObject(_DECODER, message)
        value = decoded.value
        if isinstance(value, pureldap.LDAPSearchResultEntry):
            attributes = {_text(name).lower(): tuple(values) for name, values in value.attributes}
            return decoded.id, Entry(bytes(value.objectName), attributes)
        if isinstance(value, pureldap.LDAPSearchResultReference):
            return decoded.id, None
        if isinstance(value, pureldap.LDAPResult):
            name = getattr(value, "responseName", None)
            return decoded.id, Result(int(value.resultCode), _text(value.errorMessage), name)
    except _WRONG:
        pass
    raise Unusable("it sends a message that is no response")


def _text(value: bytes) -> str:
    return bytes(value).decode("utf-8", "replace")

"""
The head of a request, checked and parsed in one pass.

If two programs on the way of a connection disagree about where a request ends, a request can be smuggled past one of
them. So everything ambiguous is refused: folded lines, bare CR or LF, blanks before a colon, two lengths, a length
beside ``chunked``, two hosts (RFC 9112 sections 2.2, 3.2, 5.1, 5.2, 6.1, 6.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv6Address

from attrs import define

from pkgrepo.http.limits import HttpLimits
from pkgrepo.untrusted.header_fields import (
    TOKEN,
    MalformedField,
    connection_options,
    has_controls,
    join_lines,
    parse_lines,
)

_LABEL = rb"[A-Za-z0-9_~-]{1,63}"  # RFC 1035 section 2.3.4; the codec for IDNA raises for longer and for empty ones
_HOST = re.compile(rb"(?:(%b(?:\.%b)*\.?)|\[([0-9A-Fa-f:.]+)\])(?::([0-9]{1,5}))?" % (_LABEL, _LABEL))
_MAX_NAME = 255  # bytes
_MAX_PORT = 65_535


VISIBLE = bytes(range(0x21, 0x7F))
_SINGLE = (b"host", b"content-length", b"transfer-encoding", b"expect")

_ABSOLUTE = re.compile(rb"https?://([^/?#]+)(.*)", re.IGNORECASE)
_VERSION = re.compile(rb"HTTP/[0-9]\.[0-9]")
_TLS_HANDSHAKE = b"\x16\x03"  # a record's type and the first byte of its version, RFC 8446 section 5.1
_MAX_LENGTH_DIGITS = 18
_METHODS = frozenset([b"GET", b"HEAD", b"PUT", b"POST", b"PATCH", b"DELETE", b"OPTIONS"])


class BadHead(Exception):  # noqa: N818 - a fault of the client, not of ours
    """A head that is refused with ``status``; the message is for the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@define
class FieldBlock:
    """
    The header fields of a request.

    ``values`` maps lower-case names to values, several lines of one name joined by a comma (RFC 9110 section 5.3);
    all requests of a connection with the same bytes share it, so it must not be changed. ``lines`` are the fields as
    they came. ``length`` is None without Content-Length.
    """

    raw: bytes
    values: dict[bytes, bytes]
    lines: list[tuple[bytes, bytes]]
    length: int | None
    chunked: bool
    close: bool
    expects: bool
    host: bytes | None


@define
class RequestLine:
    """Method, target in origin form, authority of a target in absolute form, and whether the version is 1.1."""

    method: bytes
    target: bytes
    authority: bytes | None
    is_http_1_1: bool


TakeCredentials = Callable[[RequestLine, FieldBlock], tuple[RequestLine, FieldBlock]]


def parse_request_line(line: bytes) -> RequestLine:
    """
    The request line.

    :raises BadHead: it does not follow RFC 9112 section 3, or speaks another major version (505)
    """
    parts = line.split(b" ")
    if len(parts) != 3:
        raise BadHead(400, "the request line is not: method, one space, target, one space, version")
    method, target, version = parts
    if method not in _METHODS and (not method or method.translate(None, TOKEN)):
        raise BadHead(400, "the method is not a token")
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        if _VERSION.fullmatch(version):
            raise BadHead(505, "this server speaks HTTP/1.1")
        raise BadHead(400, "the protocol version is malformed")
    if target.translate(None, VISIBLE):
        raise BadHead(400, "the request target holds bytes that must be percent-encoded")
    if target[:1] == b"/":
        return RequestLine(method, target, None, version == b"HTTP/1.1")
    return _other_form(method, target, version)


def _other_form(method: bytes, target: bytes, version: bytes) -> RequestLine:
    is_http_1_1 = version == b"HTTP/1.1"
    if target == b"*" and method == b"OPTIONS":
        return RequestLine(method, target, None, is_http_1_1)
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None or not is_host(absolute[1]):
        raise BadHead(400, "the request target is neither a path nor an http address")
    path = absolute[2]
    return RequestLine(method, path if path[:1] == b"/" else b"/" + path, absolute[1], is_http_1_1)


def check_part_of_head(data: bytes, at: int, end: int, limits: HttpLimits) -> None:
    """
    Check a head that begins at ``at`` and is incomplete (``end`` is negative) or ends at ``end``, beyond its limit.

    :raises BadHead: it is too long, or malformed already
    """
    if (len(data) if end < 0 else end) - at > limits.header_bytes:
        raise BadHead(431, f"the request head is longer than {limits.header_bytes} bytes")
    if data.startswith(_TLS_HANDSHAKE, at):  # container clients try TLS first
        raise BadHead(400, "the client speaks TLS, and this address does not")
    if data.count(b"\n", at) != data.count(b"\r\n", at):
        raise BadHead(400, "a header line does not end with CR LF")


def parse_fields(raw: bytes, limits: HttpLimits) -> FieldBlock:
    """
    The field lines, each ended by CRLF, without the empty line.

    :raises BadHead: they break the rules of the module, or are too many (431)
    """
    rows = raw.split(b"\r\n")
    rows.pop()
    if len(rows) > limits.header_count:
        raise BadHead(431, f"more than {limits.header_count} header fields")
    if has_controls(raw, len(rows)):
        raise BadHead(400, "the header holds control bytes, or a line that does not end with CR LF")
    try:
        lines = parse_lines(rows)
    except MalformedField:
        raise BadHead(400, "a header line is folded, or its name is not a token followed by a colon") from None
    values = join_lines(lines)
    if len(values) < len(lines):
        names = [name.lower() for name, _ in lines]
        for name in _SINGLE:
            if names.count(name) > 1:
                raise BadHead(400, f"more than one {name.decode()} header field")
    return _framing(raw, values, lines)


def _framing(raw: bytes, values: dict[bytes, bytes], lines: list[tuple[bytes, bytes]]) -> FieldBlock:
    length: int | None = None
    announced = values.get(b"content-length")
    if announced is not None:
        if not announced.isdigit() or len(announced) > _MAX_LENGTH_DIGITS:
            raise BadHead(400, "Content-Length is not a plain number")
        length = int(announced)
    coding = values.get(b"transfer-encoding")
    if coding is not None:
        if length is not None:
            raise BadHead(400, "Content-Length and Transfer-Encoding exclude each other")
        if coding.lower() != b"chunked":
            raise BadHead(400, "the only transfer coding understood here is chunked")
    host = values.get(b"host")
    if host is not None and not is_host(host):
        raise BadHead(400, "the Host header field is malformed")
    expectation = values.get(b"expect")
    if expectation is not None and expectation.lower() != b"100-continue":
        raise BadHead(417, "the only expectation understood here is 100-continue")
    return FieldBlock(
        raw=raw,
        values=values,
        lines=lines,
        length=length,
        chunked=coding is not None,
        close=b"close" in connection_options(values),
        expects=expectation is not None,
        host=host,
    )


def check_version(line: RequestLine, fields: FieldBlock) -> None:
    """
    The rules that join the two parts.

    :raises BadHead: HTTP/1.1 without Host, or HTTP/1.0 with a transfer coding (RFC 9112 sections 3.2 and 6.1)
    """
    if line.is_http_1_1:
        if fields.host is None:
            raise BadHead(400, "HTTP/1.1 needs a Host header field")
    elif fields.chunked:
        raise BadHead(400, "HTTP/1.0 knows no transfer codings")


def is_host(text: bytes) -> bool:
    """Whether ``text`` is a name or an address, IPv6 in brackets, perhaps with a port (RFC 9110 section 4.2.1)."""
    found = _HOST.fullmatch(text)
    if found is None or len(found[1] or b"") > _MAX_NAME or int(found[3] or 0) > _MAX_PORT:
        return False
    return found[2] is None or _is_ipv6(found[2].decode("ascii"))


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True

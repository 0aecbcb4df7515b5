"""Parses XML of clients: any encoding, no DTDs and entities, in pieces, so that the target bounds the memory."""

from __future__ import annotations

import re
from typing import Any, Final
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException, DTDForbidden
from defusedxml.ElementTree import DefusedXMLParser

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import Invalid

PIECE: Final = 16 * 1024  # bytes that are parsed at a time; between them other threads run
DEEPEST: Final = 500  # elements within each other
LONGEST_PIECE: Final = (
    128 * 1024
)  # characters from one "<" to the next; a tag of 4 MiB keeps the interpreter for seconds

# Encodings of several bytes for a character that the parser does not know, but Python does.
_ENCODINGS: Final = frozenset(
    {"big5", "big5-hkscs", "cp932", "euc-jp", "euc-kr", "gb18030", "gb2312", "gbk", "iso-2022-jp", "shift_jis"}
)
_DECLARATION: Final = re.compile(rb"<\?xml[^>]{0,100}?\sencoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")


def parse_xml(content: bytes, target: Any, what: str, pointer: str) -> str | None:
    """
    Parse a document with a ``TreeBuilder``-like target, whose ``Invalid`` is passed on.

    Returns None, or a sentence why it cannot be read although it may be well-formed: it has a DOCTYPE, or an unknown
    encoding. ``what`` is the document in sentences, ``pointer`` that of the errors.

    :raises Invalid: it is malformed, or declares entities
    """
    parser = DefusedXMLParser(target=target, forbid_dtd=True)
    try:
        text = _decode(content)
        if _has_long_piece(text):
            return f"{what} has a tag or a text that is longer than {LONGEST_PIECE // 1024} KiB"
        gil = GilReleaser()
        for start in range(0, len(text), PIECE):
            parser.feed(text[start : start + PIECE])
            gil.release_if_due()
        parser.close()
    except DTDForbidden:
        return f"{what} has a DOCTYPE, which is not allowed"
    except (LookupError, ValueError) as error:
        if isinstance(error, DefusedXmlException):
            raise Invalid(f"{what} declares entities, which is not allowed", pointer) from error
        return f"{what} cannot be decoded: its encoding is unknown, or another than it says"
    except ParseError as error:
        line, column = error.position
        raise Invalid(f"{what} is not well-formed XML, see line {line}, column {column}", pointer) from error
    return None


def _decode(content: bytes) -> bytes | str:
    """
    The document as the parser reads it and in which a "<" is always the same: the bytes, if it can.

    :raises ValueError: they are not in the encoding that they say
    """
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16")
    if content[:2] in (b"<\x00", b"\x00<"):
        return content.decode("utf-16-le" if content[1] == 0 else "utf-16-be")
    found = _DECLARATION.match(content[:200].removeprefix(b"\xef\xbb\xbf"))
    encoding = found[1].decode("ascii").lower() if found else ""
    return content.decode(encoding) if encoding in _ENCODINGS else content


def _has_long_piece(text: bytes | str) -> bool:
    at = 0
    while len(text) - at > LONGEST_PIECE:
        end = at + LONGEST_PIECE
        found = text.rfind("<", at, end) if isinstance(text, str) else text.rfind(b"<", at, end)
        if found < 0:
            return True
        at = found + 1
    return False

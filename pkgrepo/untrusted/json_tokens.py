"""Patterns of the tokens of JSON text (RFC 8259), for readers that do not parse all of it."""

from __future__ import annotations

import re
from typing import Final

BLANK: Final = re.compile(rb"[ \t\n\r]*")
STRING: Final = re.compile(rb"\"(?:[^\"\\]++|\\.)*+\"", re.DOTALL)
ATOM: Final = re.compile(rb"[^ \t\n\r,:\[\]{}\"]+")  # a number or a literal, of whatever characters

CLOSING: Final = {ord("{"): ord("}"), ord("["): ord("]")}  # brackets by those that open them

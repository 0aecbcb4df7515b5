"""Badges: small pictures with a name and a value, as readmes show them."""

from __future__ import annotations

import re
from html import escape
from typing import Final

LONGEST: Final = 60  # characters of a text
CHARACTER: Final = 7  # pixels, on average, of the fonts below at this size
COLOR: Final = "#4c8eda"

_HEX: Final = re.compile(r"[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6}")
_NAME: Final = re.compile(r"[a-z]{3,20}")

_SVG: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{name}: {value}">
<title>{name}: {value}</title>
<clipPath id="r"><rect width="{width}" height="20" rx="3"/></clipPath>
<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#555"/>
<rect x="{left}" width="{right}" height="20" fill="{color}"/></g>
<g fill="#fff" font-family="Verdana,Geneva,sans-serif" font-size="11" text-anchor="middle">
<text x="{left_middle}" y="14">{name}</text><text x="{right_middle}" y="14">{value}</text></g>
</svg>
"""


def render_badge(name: str, value: str, color: str | None = None) -> str:
    """A badge; a colour that is neither hex digits nor the name of a colour is replaced by the usual one."""
    name, value = _cut(name), _cut(value)
    left, right = (CHARACTER * len(each) + 12 for each in (name, value))
    fill = COLOR
    if color is not None and _HEX.fullmatch(color):
        fill = f"#{color}"
    elif color is not None and _NAME.fullmatch(color):
        fill = color
    return _SVG.format(
        name=escape(name),
        value=escape(value),
        color=fill,
        left=left,
        right=right,
        width=left + right,
        left_middle=left / 2,
        right_middle=left + right / 2,
    )


def _cut(text: str) -> str:
    shown = "".join(each if each.isprintable() else "?" for each in text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"

"""
How pages write times, addresses and texts, and draw figures as SVG.

Classes of the style sheet colour the pictures: pages have no inline styles.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup, escape

from pkgrepo.display import age, browser, duration, lasting, latency, number, plural, size

_DIRECTIONS: Final = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
_DIGEST: Final = re.compile(r"sha(256|512):[0-9a-f]{64,128}")
_SLASH: Final = re.compile("(?<![/:])/(?!/)")  # of a path
_HYPHENED: Final = re.compile(r"((?<!\S)(?:(?=\S*-)[^\s/]{1,30}(?!\S)|--?[\w-]+(?==)))")  # an option, a short word
MOST_MARKED: Final = 8  # words of a search that are marked

WIDTH: Final = 720  # units of the picture, which is as wide as its place
HEIGHT: Final = 96
SPARK: Final = 116  # units, four for each day of thirty
_PICTURE: Final = Markup(
    '<svg class="chart" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" aria-label="{label}">'
    '<path class="axis" d="M0 {base}H{width}"/>{bars}</svg>'
)
_BAR: Final = Markup('<path d="M{left} {top}h{width}V{base}h-{width}z"><title>{title}</title></path>')
_SPARK: Final = Markup(
    '<svg class="chart spark" viewBox="0 0 {width} 26" preserveAspectRatio="none" role="img" aria-label="{label}">'
    '<path d="M0 25{line}V25z"/></svg>'
)
_SHARE: Final = Markup(
    '<svg class="chart share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
    '<path d="M0 0h{}v8H0z"/></svg>'
)


def sentence(text: str) -> str:
    """The text of an error as a sentence: with a capital and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""


def when(at: datetime | None, now: datetime | None = None, write: Callable[..., str] = age) -> Markup:
    """How long ago a time was, as a ``time`` element whose title is the exact time; ``write`` writes ages."""
    if at is None:
        return Markup("–")
    exact = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        exact.isoformat(timespec="seconds"),
        exact.strftime("%Y-%m-%d %H:%M:%S UTC"),
        write(exact, now or datetime.now(UTC)),
    )


def time_with_age(at: datetime, now: datetime | None = None, write: Callable[..., str] = age) -> Markup:
    """A date with the time of day, and the age beside it."""
    exact = at.astimezone(UTC)
    return Markup('<time datetime="{}">{} <span class="age">{}</span></time>').format(
        exact.isoformat(timespec="seconds"),
        exact.strftime("%Y-%m-%d %H:%M:%S"),
        write(exact, now or datetime.now(UTC)),
    )


def brief(text: str) -> str:
    """A text; of a digest, only its beginning, by which people tell digests apart."""
    return f"{text[:19]}…" if _DIGEST.fullmatch(text) else text


def segment(text: str) -> str:
    """A text as one segment of a path, with slashes encoded."""
    return quote(text, safe="")


def path(text: str) -> str:
    """A text as a path whose slashes separate segments."""
    return quote(text, safe="/")


def shell(text: str) -> str:
    """A text as one word of a command line."""
    return shlex.quote(text)


def plain(text: str) -> str:
    """A foreign text without characters that change the direction of what follows: they can disguise names."""
    return text.translate(_DIRECTIONS)


def foldable(text: str) -> Markup:
    """A command or an address whose lines may end after a slash of a path, but not within ``//`` or at a hyphen."""
    return Markup("").join(
        Markup('<span class="pair">{}</span>').format(part)
        if at % 2
        else Markup("/<wbr>").join(map(escape, _SLASH.split(part)))
        for at, part in enumerate(_HYPHENED.split(text))
    )


def mark(text: str, query: str) -> Markup:
    """A text in which the words of a search are marked; a single letter only where a word begins."""
    words = [("" if word[1:] else r"(?<!\w)") + re.escape(word) for word in query.split()[:MOST_MARKED] if word]
    if not words:
        return escape(text)
    parts = re.split(f"({'|'.join(words)})", text, flags=re.IGNORECASE)
    return Markup("").join(
        Markup("<mark>{}</mark>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
    )


def noun(count: int, one: str, many: str = "") -> str:
    """The noun of a number that stands beside it."""
    return one if count == 1 else many or one + "s"


def quoted(text: str) -> str:
    """What the API says, in English, as a part of a page that may be in another language."""
    return text


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    each.__name__: each
    for each in (
        *(size, number, plural, noun, sentence, quoted, plain, brief, mark),
        *(when, time_with_age, duration, lasting, latency),
        *(browser, segment, path, shell, foldable),
    )
}


def bars(
    values: Sequence[tuple[str, float]], label: str, shown: Callable[[float], str] = str, full: float = 0
) -> Markup:
    """
    A picture with a bar for each pair of a name and a number that is not negative; ``label`` says what it shows.

    A number ``full``, or the highest one if that is more, has a bar as high as the picture; one that is not 0 has a bar
    that can be seen. ``shown`` writes the numbers.
    """
    highest = max(full, max((count for _, count in values), default=0))
    step = WIDTH / max(1, len(values))
    drawn = [
        _BAR.format(
            left=f"{at * step:.4g}",
            width=f"{step * 0.8:.3g}",
            top=f"{(HEIGHT - 1) * (1 - max(count / highest, 0.02)):.3g}",
            base=HEIGHT - 1,
            title=f"{name}: {shown(count)}",
        )
        for at, (name, count) in enumerate(values)
        if count
    ]
    return _PICTURE.format(width=WIDTH, height=HEIGHT, base=HEIGHT - 0.5, label=label, bars=Markup("").join(drawn))


def spark(counts: Sequence[int], label: str) -> Markup:
    """A small picture of how numbers went, such as those of days, for a row of a table; ``label`` says it in words."""
    highest, step = max(counts, default=0) or 1, SPARK / max(1, len(counts) - 1)
    line = "".join(f"L{round(at * step)} {round(24 - 22 * count / highest)}" for at, count in enumerate(counts))
    return _SPARK.format(width=SPARK, label=label, line=line)


def share(part: float, whole: float) -> Markup:
    """A bar for a row of a table, as long as a part is of the whole."""
    return _SHARE.format(f"{100 * part / whole if whole else 0:.3g}")

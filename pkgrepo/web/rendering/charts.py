"""Pictures of figures, as SVG in the page. Classes of the style sheet colour them: pages have no inline styles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from markupsafe import Markup

WIDTH: Final = 720  # units of the picture, which is as wide as its place
HEIGHT: Final = 96

_PICTURE: Final = Markup(
    '<svg class="chart" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" aria-label="{label}">'
    '<path class="axis" d="M0 {base}H{width}"/>{bars}</svg>'
)
_BAR: Final = Markup('<path d="M{left} {top}h{width}V{base}h-{width}z"><title>{title}</title></path>')

_SHARE: Final = Markup(
    '<svg class="chart share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
    '<path d="M0 0h{}v8H0z"/></svg>'
)


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


def share(part: float, whole: float) -> Markup:
    """A bar for a row of a table, as long as a part is of the whole."""
    return _SHARE.format(f"{100 * part / whole if whole else 0:.3g}")

"""Pictures of figures, as SVG in the page. Classes of the style sheet colour them: pages have no inline styles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

WIDTH: Final = 720  # units of the picture, which is as wide as its place
HEIGHT: Final = 96

_PICTURE: Final = Markup(
    '<svg class="chart" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img" aria-label="{label}">'
    '<path class="axis" d="M0 {base}H{width}"/>{bars}</svg>'
)
_BAR: Final = Markup('<path d="M{left} {top}h{width}V{base}h-{width}z"><title>{title}</title></path>')


def bars(values: Sequence[tuple[str, int]], label: str) -> Markup:
    """
    A picture with a bar for each pair of a name and a number that is not negative; ``label`` says what it shows.

    The highest bar is as high as the picture. A number that is not 0 has a bar that can be seen.
    """
    highest = max((count for _, count in values), default=0)
    step = WIDTH / max(1, len(values))
    drawn = [
        _BAR.format(
            left=f"{at * step:.4g}",
            width=f"{step * 0.8:.3g}",
            top=f"{(HEIGHT - 1) * (1 - max(count / highest, 0.02)):.3g}",
            base=HEIGHT - 1,
            title=f"{name}: {count}",
        )
        for at, (name, count) in enumerate(values)
        if count
    ]
    return _PICTURE.format(width=WIDTH, height=HEIGHT, base=HEIGHT - 0.5, label=label, bars=Markup("").join(drawn))

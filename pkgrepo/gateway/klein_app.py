"""Klein applications that take the path as it is, and redirect nothing."""

from __future__ import annotations

from klein import Klein
from werkzeug.routing import PathConverter


class RawConverter(PathConverter):
    """Matches any rest of a path, also one with empty segments or line ends: ``<raw:rest>``."""

    regex = r"[\s\S]*?"
    part_isolating = False  # it has slashes


def new_app() -> Klein:
    """An application whose routes match with and without a trailing slash, and never merge slashes or redirect."""
    app = Klein()
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = False
    app.url_map.converters["raw"] = RawConverter
    return app

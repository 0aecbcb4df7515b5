"""Klein applications that take the path as it is, and redirect nothing."""

from __future__ import annotations

from klein import Klein


def new_app() -> Klein:
    """An application whose routes match with and without a trailing slash, and never merge slashes or redirect."""
    app = Klein()
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = False
    return app

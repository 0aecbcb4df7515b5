"""Klein applications as the formats use them: the path is taken as it is, and nothing is redirected behind our back."""

from __future__ import annotations

from klein import Klein


def new_app() -> Klein:
    """An application whose routes match with and without a slash at the end, and never merge or redirect."""
    app = Klein()
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = False
    return app

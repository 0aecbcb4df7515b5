"""Renders the OpenAPI document as an HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from pkgrepo.http.answers import Answer

POLICY = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }}
code {{ font: 14px/1.4 ui-monospace, monospace }} h3 {{ margin-bottom: 0 }} .old {{ opacity: .6 }}
td {{ vertical-align: top; padding-right: 1em }}
</style></head><body><h1>{title}</h1>
<p>Version {version}. The same for programs: <a href="openapi.json">openapi.json</a>.</p>
"""


def render_page(document: Mapping[str, Any]) -> Answer:
    """The OpenAPI document as HTML without scripts and without references to other resources."""
    info = document["info"]
    parts = [_HEAD.format(title=escape(info["title"]), version=escape(info["version"]))]
    for tag, operations in _by_tag(document["paths"]).items():
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts += [_operation(*each) for each in operations]
    parts.append("</body></html>\n")
    return Answer(
        body="".join(parts).encode(),
        content_type=b"text/html; charset=utf-8",
        headers=((b"Cache-Control", b"no-cache"), (b"Content-Security-Policy", POLICY)),
    )


def _by_tag(paths: Mapping[str, Mapping[str, Any]]) -> dict[str, list[tuple[str, str, Mapping[str, Any]]]]:
    found: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
    for path, operations in paths.items():
        for method, operation in operations.items():
            found.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    return found


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    old = ' class="old"' if operation.get("deprecated") else ""
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['description'])}</td></tr>"
        for each in operation["parameters"]
    )
    return (
        f"<section{old}><h3><code>{method} /api{escape(path)}</code></h3>"
        f"<p><b>{escape(operation['summary'])}.</b> {escape(operation['description'])}</p>"
        f"<table>{rows}</table></section>"
    )

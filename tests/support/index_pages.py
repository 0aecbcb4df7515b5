"""Pages of a Python index as upstreams send them, and what is read of them."""

from __future__ import annotations

import json
from typing import Any

from pkgrepo.formats.python.index.pages import HTML_PAGE, JSON_PAGE, project_page_html
from pkgrepo.formats.python.proxied.normaliser import normalise
from pkgrepo.proxy.parts.values import Context, Entry, FileSource

URL = "https://index.example/root/simple/demo-pkg/"
WHEEL = "demo_pkg-1.0-py3-none-any.whl"
SDIST = "demo_pkg-1.0.tar.gz"
PATH = f"packages/demo-pkg/1.0/{WHEEL}"
SHA, OTHER = "ab" * 32, "cd" * 32


def page(*files: Any, **members: Any) -> bytes:
    value = {"meta": {"api-version": "1.4"}, "name": "demo-pkg", "files": list(files), **members}
    return json.dumps(value).encode()


def listed(filename: str = WHEEL, **members: Any) -> dict[str, Any]:
    return {"filename": filename, "url": f"https://files.example/a/{filename}", "hashes": {"sha256": SHA}, **members}


def anchor(filename: str = WHEEL, fragment: str = f"#sha256={SHA}", attributes: str = "") -> str:
    return f'<a href="https://files.example/a/{filename}{fragment}" {attributes}>{filename}</a><br>'


def html(*anchors: str, head: str = "<title>Links for demo-pkg</title>") -> bytes:
    return f"<!DOCTYPE html><html><head>{head}</head><body>{' '.join(anchors)}</body></html>".encode()


def read(source: bytes, url: str = URL, name: str = "demo-pkg") -> tuple[dict[str, Any], list[Entry]]:
    normalised = normalise(source, Context(name, url))
    return normalised.top, list(normalised.entries)


def read_one(source: bytes, url: str = URL) -> Entry:
    (entry,) = read(source, url)[1]
    return entry


def shown(entry: Entry) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(entry.fragments[JSON_PAGE])
    return value


def source_of(entry: Entry, suffix: str = "") -> FileSource:
    return next(each for each in entry.files if each.path == PATH + suffix)


def reread(entry: Entry) -> dict[str, Any]:
    """What we read in our own anchor."""
    document = project_page_html("demo-pkg", 1, ["1.0"], [entry.fragments[HTML_PAGE]]).joined()
    return shown(read_one(document))


FULL = listed(
    **{
        "requires-python": "<4,>=3.8",
        "size": 1447,
        "upload-time": "2024-01-02T03:04:05.123456Z",
        "yanked": "broken",
        "core-metadata": {"sha256": OTHER},
        "gpg-sig": True,
        "provenance": "https://index.example/integrity/x/provenance",
        "x-scanned": {"by": ["z"]},
    }
)

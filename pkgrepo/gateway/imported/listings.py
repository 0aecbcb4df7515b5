"""Listings of folders, as web servers make them: pages with a link to each entry."""

from __future__ import annotations

import hashlib
from html.parser import HTMLParser
from typing import Final
from urllib.parse import quote, unquote

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.gateway.imported.places import Site
from pkgrepo.outbound.urls import parse_url, resolve_reference

LARGEST_LISTING: Final = 64 * 1024 * 1024  # bytes


@frozen
class Listing:
    """The names of the folders and files in a folder, and a text that differs if the page does."""

    folders: list[str]
    files: list[str]
    mark: str


async def read_listing(site: Site, url: str) -> Listing | None:
    """
    The listing at a URL with a slash at the end; None if what is there is no page. Hidden names are left out.

    :raises NotFound: there is nothing; :raises UpstreamFailed: the site fails
    """
    content, final = await site.read(url, "text/html", largest=LARGEST_LISTING)
    return await site.pools.cpu(parse_listing, content, final)


async def list_below(site: Site, path: str, most: int) -> tuple[list[str], list[str]]:
    """
    The paths of the files below a folder of a site, by its listings, and texts that differ if these do.

    :raises Invalid: a page is none, or what is below has no end: ``most`` files and folders
    """
    files, marks, waiting = list[str](), list[str](), [path]
    while waiting:
        folder = waiting.pop()
        page = await read_listing(site, f"{site.url}/{quote(folder)}/")
        if page is None:
            raise Invalid(f"there is no page with the files of {folder}")
        marks.append(page.mark)
        files += [f"{folder}/{each}" for each in page.files]
        waiting += [f"{folder}/{each}" for each in reversed(page.folders)]
        if len(files) + len(waiting) + len(marks) > most:
            raise Invalid(f"there are more than {most} files and folders in {path}")
    return files, marks


def parse_listing(content: bytes, url: str) -> Listing | None:
    """The listing with these bytes, whose final URL this is."""
    base = parse_url(url if url.endswith("/") else f"{url}/").text
    reader = _Links()
    try:
        reader.feed(content.decode("utf-8", "replace"))
    except (AssertionError, ValueError):  # of the parser: a malformed declaration, a number of 5,000 digits
        return None
    folders: dict[str, None] = {}
    files: dict[str, None] = {}
    for href in reader.found:
        try:
            link = resolve_reference(parse_url(base), href.encode().decode("latin-1")).text.partition("?")[0]
        except ValueError:
            continue
        rest = _below(base, link)
        name = unquote(rest.removesuffix("/"))
        if not name or "/" in name or name.startswith(".") or not name.isprintable():
            continue
        (folders if rest.endswith("/") else files)[name] = None
    if not folders and not files and b"<" not in content:
        return None
    mark = hashlib.sha256("\n".join(reader.found).encode() + content).hexdigest()
    return Listing([*folders], [*files], mark)


class _Links(HTMLParser):
    """The targets of the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the target of a link."""
        if tag == "a":
            self.found += [value for key, value in attrs if key == "href" and value]


def _below(base: str, link: str) -> str:
    """
    What follows the URL of a listing in a link, or nothing.

    Nexus 2 makes links of the address that its settings have: that may have another host, if not at its root.
    """
    if link.startswith(base):
        return link.removeprefix(base)
    path, linked = (each.split("/", 3)[3] for each in (base, link))
    return linked.removeprefix(path) if path and linked.startswith(path) else ""

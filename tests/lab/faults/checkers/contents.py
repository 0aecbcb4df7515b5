"""The content of a repository as its API lists it, for the comparison of two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from tests.support.first_publishes import Publisher

Versions = Mapping[tuple[str, str], tuple[Any, ...]]


def listed(api: Publisher, path: str) -> Iterator[Any]:
    """All items of a list with pages."""
    cursor = ""
    while True:
        page = api.ask("GET", f"{path}{'&' if '?' in path else '?'}limit=1000{cursor}").json()
        yield from page["items"]
        if page["next"] is None:
            return
        cursor = f"&cursor={quote(page['next'], safe='')}"


def versions_of(api: Publisher, repository: str) -> Versions:
    """The state, the tags and the digests of the files of each version of a repository; none if it is not there."""
    found: dict[tuple[str, str], tuple[Any, ...]] = {}
    if api.send("GET", f"api/repository/{quote(repository, safe='')}").status_code == 404:
        return found
    for package in listed(api, f"api/repository/{quote(repository, safe='')}/packages"):
        place = f"api/package/{quote(repository, safe='')}/{quote(package['key'], safe='')}/versions"
        for each in listed(api, place):
            version = api.ask("GET", f"{place}/{quote(each['version'], safe='')}").json()
            files = sorted((file["path"], file["digests"]["sha256"]) for file in version["files"])
            tags = sorted(version.get("tags") or ())
            found[package["key"], each["version"]] = (version.get("state"), version.get("reason"), tags, files)
    return found


def differences(what: str, source: Versions, copy: Versions) -> Iterator[str]:
    """What a copy has otherwise than its source."""
    for key in sorted({*source} | {*copy}):
        if source.get(key) != copy.get(key):
            yield f"{what}: {key} is {source.get(key)} in the source, and {copy.get(key)} in the copy"

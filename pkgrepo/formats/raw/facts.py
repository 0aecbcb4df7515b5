"""What the server knows of the raw format before a repository needs it."""

from __future__ import annotations

from typing import Final

from pkgrepo.auth.permissions.format_rights import FormatRights, prefixes
from pkgrepo.gateway.format import FormatFacts, Look
from pkgrepo.repositories.format import PackageUrls

FACTS: Final = FormatFacts(
    name="raw",
    aliases=("generic",),
    package_urls=PackageUrls(types=("generic",)),
    # of names that are paths: a package, and those below a folder
    rights=FormatRights(
        patterns=lambda package: (package, *(f"{each}/*" for each in prefixes(package, "/")[1:])),
        stem=lambda pattern: (pattern.removesuffix("/*"), ""),
        forms="tool (one package) or releases/* (those below a folder)",
    ),
    look=Look(
        icon='<path d="M6 3h8l5 5v13H6zM14 3v5h5M9.5 13h6M9.5 16.5h6"/>',
        light="#3d5a73",
        dark="#a9c4dc",
        programs="curl, wget",
        starter="files",
    ),
)

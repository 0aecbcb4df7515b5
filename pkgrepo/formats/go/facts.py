"""What the server knows of the Go format before a repository needs it."""

from __future__ import annotations

from typing import Final

from pkgrepo.auth.permissions.format_rights import FormatRights, prefixes
from pkgrepo.formats.go.names import bound_key, check_module
from pkgrepo.gateway.format import FormatFacts, Look
from pkgrepo.repositories.format import Ecosystem, PackageUrls
from pkgrepo.repositories.version_ranges import one_build

NAME: Final = "go"

FACTS: Final = FormatFacts(
    name=NAME,
    aliases=("golang", "gomod"),
    package_urls=PackageUrls(types=("golang",)),
    rights=FormatRights(
        patterns=lambda module: (module, *(f"{each}/*" for each in prefixes(module, "/")[1:])),
        stem=lambda pattern: (pattern.removesuffix("/*"), ""),
        forms="example.com/tools (one module) or example.com/* (those below it)",
    ),
    ecosystem=Ecosystem(
        name="Go", package_key=check_module, sort=bound_key, builds=one_build(bound_key), semantic=True
    ),
    look=Look(
        icon='<path d="M14 9H9a4 4 0 1 0 4 4h-2.5"/><path d="M22 13a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM2 11h2M1 14h3"/>',
        light="#00677f",
        dark="#5fd0e8",
        programs="go",
        starter="go",
    ),
)

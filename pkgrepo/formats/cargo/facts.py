"""What the server knows of the Cargo format before a repository needs it."""

from __future__ import annotations

from typing import Final

from pkgrepo.formats.cargo.names import package_key
from pkgrepo.gateway.format import FormatFacts, Look
from pkgrepo.repositories import semver
from pkgrepo.repositories.format import Ecosystem, PackageUrls
from pkgrepo.repositories.version_ranges import one_build

EXCHANGE: Final = "api/v1/trusted_publishing/tokens"  # below a repository, and at the root

FACTS: Final = FormatFacts(
    name="cargo",
    aliases=("crates", "rust"),
    package_urls=PackageUrls(types=("cargo",)),
    ecosystem=Ecosystem(
        name="crates.io",
        package_key=package_key,
        sort=semver.sort_key,
        builds=one_build(semver.sort_key),
        semantic=True,
    ),
    needs_no_credentials=lambda path: path in (EXCHANGE.encode(), b"me"),
    exchanges=("api/v1",),
    look=Look(
        icon='<path d="M4 7h16v12H4zM4 7l3-3h10l3 3M4 11h16M9 7v12M15 7v12"/>',
        light="#8a4a12",
        dark="#ffb27a",
        programs="cargo",
        starter="crates",
    ),
)

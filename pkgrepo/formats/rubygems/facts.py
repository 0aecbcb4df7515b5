"""What the server knows of the Ruby gem format before a repository needs it."""

from __future__ import annotations

from typing import Final

from pkgrepo.formats.rubygems.names import bound_key, builds, check_name
from pkgrepo.gateway.format import FormatFacts, Look
from pkgrepo.repositories.format import Ecosystem, PackageUrls

EXCHANGE: Final = "api/v1/oidc/trusted_publisher/exchange_token"  # below a repository, and at the root

FACTS: Final = FormatFacts(
    name="ruby",
    aliases=("rubygems", "gem"),
    package_urls=PackageUrls(types=("gem",)),
    ecosystem=Ecosystem(name="RubyGems", package_key=check_name, sort=bound_key, builds=builds),
    needs_no_credentials=lambda path: path == EXCHANGE.encode(),
    exchanges=("api/v1",),
    look=Look(
        icon=('<path d="M7 4h10l4 5.5L12 21 3 9.5zM3 9.5h18M8.5 9.5 12 20l3.5-10.5L12 4z"/>'),
        light="#a3123a",
        dark="#ff8aa6",
        programs="gem, bundler",
        starter="gems",
    ),
)

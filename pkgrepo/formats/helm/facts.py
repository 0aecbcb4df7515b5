"""What the server knows of the Helm format before a repository needs it."""

from __future__ import annotations

from typing import Final

from pkgrepo.auth.permissions.format_rights import HYPHENATED
from pkgrepo.gateway.format import FormatFacts, Look
from pkgrepo.repositories.format import PackageUrls

NAME: Final = "helm"

FACTS: Final = FormatFacts(
    name=NAME,
    package_urls=PackageUrls(types=("helm",)),
    rights=HYPHENATED,
    look=Look(
        icon=(
            '<path d="M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0zM12 8V3M12 21v-5M8 12H3M21 12h-5M5.6 5.6l3.6 3.6M14.8 '
            '14.8l3.6 3.6"/>'
        ),
        light="#0f1689",
        dark="#9aa5ff",
        programs="helm",
        starter="charts",
        inside=("values.yaml", "templates/"),
    ),
)

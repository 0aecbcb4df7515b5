"""What the server knows of the toy format before a repository needs it."""

from __future__ import annotations

from typing import Final

from pkgrepo.gateway.format import FormatFacts
from pkgrepo.repositories.format import PackageUrls

from .names import NAME

FACTS: Final = FormatFacts(name=NAME, package_urls=PackageUrls(types=(NAME,)))

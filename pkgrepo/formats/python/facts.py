"""What the server knows of the Python format before a repository needs it."""

from __future__ import annotations

from typing import Final

from pkgrepo.auth.permissions.format_rights import HYPHENATED
from pkgrepo.gateway.format import FormatFacts, Look
from pkgrepo.repositories.format import Ecosystem, PackageUrls

EXCHANGES: Final = b"_/oidc/"
ECOSYSTEM: Final = "PyPI"  # as databases of vulnerabilities name the format


def _normalise(name: str) -> str:
    from pkgrepo.formats.python.names import normalise  # noqa: PLC0415 - see L{FormatFacts}

    return normalise(name)


def _bound_key(version: str) -> bytes:
    from pkgrepo.formats.python.versions import bound_key  # noqa: PLC0415 - as above

    return bound_key(version)


def _builds(version: str) -> tuple[bytes, bytes]:
    from pkgrepo.formats.python.versions import builds  # noqa: PLC0415 - as above

    return builds(version)


FACTS: Final = FormatFacts(
    name="python",
    aliases=("pypi", "pip"),
    package_urls=PackageUrls(types=("pypi",)),
    rights=HYPHENATED,
    ecosystem=Ecosystem(name=ECOSYSTEM, package_key=_normalise, sort=_bound_key, builds=_builds),
    needs_no_credentials=lambda path: path.startswith(EXCHANGES),
    exchanges=("_",),
    look=Look(
        icon=(
            '<path d="M12 3H9.5A2.5 2.5 0 0 0 7 5.5V9H4.5A2 2 0 0 0 3 11v2.5A2.5 2.5 0 0 0 5.5 16H7v-1.5A2.5 '
            '2.5 0 0 1 9.5 12h5A2.5 2.5 0 0 0 17 9.5v-4A2.5 2.5 0 0 0 14.5 3z"/><path d="M17 8h1.5A2.5 2.5 0 '
            "0 1 21 10.5V13a2 2 0 0 1-1.5 2H17v3.5a2.5 2.5 0 0 1-2.5 2.5h-5A2.5 2.5 0 0 1 7 18.5V16M10 6h.01M"
            '14 18h.01"/>'
        ),
        light="#2f6899",
        dark="#7fb3e0",
        programs="pip, uv, poetry",
        starter="pypi",
    ),
)

"""What the server knows of the npm format before a repository needs it."""

from __future__ import annotations

from typing import Final

from pkgrepo.formats.npm import semver
from pkgrepo.formats.npm.names import RIGHTS, package_key
from pkgrepo.gateway.format import FormatFacts, Look
from pkgrepo.repositories.format import Ecosystem, PackageUrls
from pkgrepo.repositories.semver import padded
from pkgrepo.repositories.version_ranges import one_build

EXCHANGE: Final = b"-/npm/v1/oidc/token/exchange/package/"  # before the name of a package
LOGINS: Final = (b"-/user/org.couchdb.user:", b"-/user/token/", b"-/v1/login", b"-/v1/done", EXCHANGE)


def _bound(text: str) -> bytes:
    return semver.parse_version(padded(text)).sort


ECOSYSTEM: Final = Ecosystem(name="npm", package_key=package_key, sort=_bound, builds=one_build(_bound), semantic=True)

FACTS: Final = FormatFacts(
    name="npm",
    aliases=("node",),
    package_urls=PackageUrls(types=("npm",)),
    rights=RIGHTS,
    ecosystem=ECOSYSTEM,
    needs_no_credentials=lambda path: path.startswith(LOGINS),
    exchanges=("-",),
    look=Look(
        icon=('<path d="M4 4h16v16H4z"/><path d="M8.5 20V8.5H16V20M12.3 12.5V20"/>'),
        light="#c12127",
        dark="#ff8a86",
        programs="npm, pnpm, yarn, bun",
        starter="npm",
    ),
)

"""What the server knows of the container format before a repository needs it."""

from __future__ import annotations

from typing import Final

from pkgrepo.formats.container.names import RIGHTS
from pkgrepo.gateway.format import FormatFacts, Look
from pkgrepo.repositories.format import PackageUrls


def _names(type_: str, name: str) -> tuple[str, ...]:
    """The registry for the type docker names the images of its own so."""
    return (name, f"library/{name}") if type_ == "docker" and "/" not in name else (name,)


FACTS: Final = FormatFacts(
    name="docker",
    aliases=("container", "oci"),
    package_urls=PackageUrls(types=("docker", "oci"), names=_names, digest_types=frozenset({"oci"})),
    rights=RIGHTS,
    # the challenge names the token service
    needs_no_credentials=lambda path: path == b"v2" or path.startswith(b"v2/"),
    branch_names=("v2",),
    look=Look(
        icon=(
            '<path d="M3 13h4v4H3zM7 13h4v4H7zM11 13h4v4h-4zM7 9h4v4H7zM11 9h4v4h-4zM11 5h4v4h-4zM15 13h4v4h-'
            '4zM3 20.5c2 1 4 1 6 0s4-1 6 0 4 1 6 0"/>'
        ),
        light="#0b67b2",
        dark="#6db8ff",
        programs="docker, podman, helm, oras",
        starter="images",
    ),
)

"""What the server knows of the conda format before a repository needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pkgrepo.auth.permissions.format_rights import HYPHENATED
from pkgrepo.formats.conda.names import BRANCH
from pkgrepo.gateway.format import FormatFacts, Look
from pkgrepo.model import Repository
from pkgrepo.repositories.format import Companion, DerivedFrom, PackageUrls


def _config(parent: Repository, companion: Callable[[str], str | None]) -> Mapping[str, Any] | None:
    from pkgrepo.formats.conda.configuration import companion_config  # noqa: PLC0415 - see L{FormatFacts}

    return companion_config(parent, companion)


def _copy_of(package: str) -> str | None:
    from pkgrepo.formats.conda.wheels.requirements import conda_name  # noqa: PLC0415 - as above

    return conda_name(package)


def _origin(attrs: Mapping[str, Any]) -> DerivedFrom | None:
    from pkgrepo.formats.conda.wheels.origins import wheel_of  # noqa: PLC0415 - as above

    return wheel_of(attrs)


def _origins(package: str) -> Sequence[str]:
    from pkgrepo.formats.conda.wheels.requirements import projects_of  # noqa: PLC0415 - as above

    return projects_of(package)


FACTS: Final = FormatFacts(
    name="conda",
    package_urls=PackageUrls(types=("conda",)),
    rights=HYPHENATED,
    companion=Companion(
        of=("python",), segment="conda", config=_config, copy_of=_copy_of, origin=_origin, origins=_origins
    ),
    branch_names=(BRANCH,),
    look=Look(
        icon=(
            '<path d="M19.5 8.5A8.5 8.5 0 1 0 20 15M19.5 8.5 15.5 10M19.5 8.5l.7-4.2"/><path d="M15.5 10a4.2 '
            '4.2 0 1 0 .3 4"/>'
        ),
        light="#2e7d32",
        dark="#7bd07f",
        programs="conda, mamba, pixi",
        starter="conda",
    ),
)

"""The configuration of a raw repository."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final

import msgspec

from pkgrepo.formats.raw.paths import LONGEST_PATH
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.proxy import schema
from pkgrepo.repositories import configuration
from pkgrepo.repositories.publish_policy import HostedPolicy
from pkgrepo.untrusted.patterns import pattern

_PART: Final = r"(?![ .]*(/|$))[^/\x00-\x1f\x7f]+"  # of a path, which is not dots and blanks alone
_Pattern = Annotated[
    str,
    msgspec.Meta(
        pattern=pattern(rf"^{_PART}(/{_PART})*$(?!\n)", "a path whose parts may have * and {name}"),
        max_length=LONGEST_PATH,
    ),
]
Packages = Annotated[
    Annotated[list[_Pattern], msgspec.Meta(max_length=32)] | None,
    meaning(
        "Patterns of paths that are packages, such as releases/* or */*, of which the first that fits counts. A file "
        "that none fits belongs to the package that is named like the first part of its path. They are chosen when the "
        "repository is added, and a virtual repository has those of its members."
    ),
]


IndexPages = Annotated[
    bool,
    meaning(
        "The page of a folder is the file index.html in it, if there is one. Programs read it; browsers save it, as "
        "any file."
    ),
]


class Policy(HostedPolicy, frozen=True):
    """Rules for what is published and served."""

    overwrite: Annotated[
        tuple[str, ...],
        meaning(
            "Patterns of the paths of files that may be replaced, and deleted and put again; * stands for anything, "
            "also for slashes. Replacing takes the permission to overwrite, too.",
            max_length=100,
        ),
    ] = ("*",)


class HostedConfig(configuration.HostedConfig, frozen=True):
    """The configuration of a hosted repository."""

    fixed: ClassVar[tuple[str, ...]] = ("push_rules", *configuration.AGREED, "index_pages")

    push_rules: Annotated[configuration.PushRules, meaning("Rules for pushes.")] = configuration.PushRules()
    policy: Annotated[Policy | None, meaning("Rules for uploads and for the packages that are served.")] = None
    packages: Packages = None
    index_pages: IndexPages = False


class ProxyConfig(schema.ProxyConfig, frozen=True, tag=RepositoryType.PROXY.value):
    """The configuration of a proxy repository, whose routes are addresses of folders with files."""

    fixed: ClassVar[tuple[str, ...]] = (*schema.ProxyConfig.fixed, *configuration.AGREED, "index_pages")

    packages: Packages = None
    index_pages: IndexPages = False


class VirtualConfig(schema.VirtualConfig, frozen=True, kw_only=True, tag=RepositoryType.VIRTUAL.value):
    """The configuration of a virtual repository, whose patterns are those of its members."""

    fixed: ClassVar[tuple[str, ...]] = (*schema.VirtualConfig.fixed, *configuration.AGREED, "index_pages")

    packages: Packages = None
    index_pages: IndexPages = False


CONFIGURATIONS = configuration.Configurations("the raw format", HostedConfig | ProxyConfig | VirtualConfig)


def policy_of(repository: Repository) -> Policy:
    """The rules for uploads to a repository."""
    return msgspec.convert(repository.policy, Policy) if repository.type is RepositoryType.HOSTED else Policy()


def patterns_of(repository: Repository) -> Sequence[str]:
    """The patterns of paths that are packages."""
    found: Sequence[str] = repository.config.get("packages") or ()
    return found

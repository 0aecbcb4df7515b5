"""The configuration of a Python repository."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pkgrepo.model.structs import meaning
from pkgrepo.proxy.schema import MergingConfig, ProxyConfig
from pkgrepo.repositories import configuration
from pkgrepo.repositories.publish_policy import HostedPolicy


class Policy(HostedPolicy, frozen=True):
    """
    Rules for uploads; all are off by default.

    ``allow_overwrite`` lets an upload replace a file. ``strict_filenames`` accepts only normalised file names. The name
    of a deleted file can be published again, even with the same bytes, only while ``reuse_deleted_names`` is on.
    """

    allow_overwrite: Annotated[bool, meaning("A file may be published again with other content.")] = False
    strict_filenames: Annotated[bool, meaning("Only normalised file names are accepted.")] = False
    reuse_deleted_names: Annotated[bool, meaning("The name of something that was deleted can be published again.")] = (
        False
    )


class CondaChannel(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The conda channel beside the repository: with ``from_wheels`` pure wheels become packages in it."""

    from_wheels: Annotated[
        bool | Literal["auto"],
        meaning("Pure wheels become packages in the conda channel; auto: once somebody has read the channel."),
    ] = "auto"


class HostedConfig(configuration.HostedConfig, frozen=True):
    """The configuration of a hosted repository. ``type`` is the fixed object; the other fields are settings."""

    push_rules: Annotated[configuration.PushRules | None, meaning("Rules for pushes.")] = None
    policy: Annotated[Policy | None, meaning("Rules for uploads and for the packages that are served.")] = None
    conda: Annotated[
        CondaChannel | None, meaning("Whether pure wheels become packages in the conda channel beside the repository.")
    ] = None


CONFIGURATIONS = configuration.Configurations("the Python format", HostedConfig | ProxyConfig | MergingConfig)

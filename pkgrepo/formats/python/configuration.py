"""The configuration of a Python repository."""

from __future__ import annotations

import msgspec

from pkgrepo.proxy.schema import MergingConfig, ProxyConfig
from pkgrepo.repositories import configuration


class Policy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    Rules for uploads; all are off by default.

    ``allow_overwrite`` lets an upload replace a file. ``strict_filenames`` accepts only normalised file names. The name
    of a deleted file can be published again, even with the same bytes, only while ``reuse_deleted_names`` is on.
    """

    allow_overwrite: bool = False
    strict_filenames: bool = False
    reuse_deleted_names: bool = False


class CondaChannel(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The conda channel beside the repository: with ``from_wheels`` pure wheels become packages in it."""

    from_wheels: bool = True


class HostedConfig(configuration.HostedConfig, frozen=True):
    """The configuration of a hosted repository. ``type`` is the fixed object; the other fields are settings."""

    push_rules: configuration.PushRules | None = None
    policy: Policy | None = None
    conda: CondaChannel | None = None


CONFIGURATIONS = configuration.Configurations("the Python format", HostedConfig | ProxyConfig | MergingConfig)

"""The configuration of a Maven repository."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, Self

import msgspec

from pkgrepo.formats.maven.openpgp import read_certificates
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.proxy import schema
from pkgrepo.proxy.route_schema import Text
from pkgrepo.proxy.schema import ProxyConfig
from pkgrepo.repositories import configuration
from pkgrepo.repositories.publish_policy import HostedPolicy

CHECKSUM_SIZE: Final = 4096  # bytes of a checksum file, which may also have the name of its file
PLUGIN_SIZE: Final = 4 * 1024 * 1024  # bytes of a plugin's descriptor, which describes each parameter of each goal


PushPolicy = Literal["RELEASES", "SNAPSHOTS", "STAGES"]  # the last one means both

RELEASES: Final = "RELEASES"
SNAPSHOTS: Final = "SNAPSHOTS"


class PushRules(configuration.PushRules, frozen=True):
    """
    Rules for pushes.

    ``push_policy`` restricts the versions that are accepted. ``yanking_allowed`` lets clients delete files, versions
    and artifacts, ``allow_overwrite`` replace files. With ``require_service_deploy`` only bundles are accepted.
    """

    push_policy: Annotated[PushPolicy, meaning("The versions that are accepted; STAGES means both.")] = "STAGES"
    yanking_allowed: Annotated[bool, meaning("Clients may delete files, versions and artifacts.")] = True
    allow_overwrite: Annotated[bool, meaning("A file may be published again with other content.")] = True
    require_service_deploy: Annotated[bool, meaning("Only bundles are accepted, no single files.")] = False

    @staticmethod
    def of(repository: Repository) -> PushRules:
        """The push rules of a repository."""
        return msgspec.convert(repository.config.get("push_rules", {}), PushRules)


class DeployRequirements(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    What every version in a deployment must have beside its POM.

    ``signatures`` asks for a PGP signature of each file, ``sources`` and ``javadoc`` for such a jar with each main jar.
    With ``trusted_keys`` (armoured OpenPGP public keys) each PGP signature must be a valid one by one of these keys.
    """

    signatures: Annotated[bool, meaning("Each file has a PGP signature.")] = False
    sources: Annotated[bool, meaning("Each main jar has a sources jar.")] = False
    javadoc: Annotated[bool, meaning("Each main jar has a javadoc jar.")] = False
    trusted_keys: Annotated[
        tuple[str, ...], meaning("Armoured OpenPGP public keys; each signature must be a valid one by one of them.")
    ] = ()

    @staticmethod
    def of(repository: Repository) -> DeployRequirements:
        """The requirements of a repository."""
        return msgspec.convert(repository.settings.get("deploy") or {}, DeployRequirements)


class HostedConfig(configuration.HostedConfig, frozen=True):
    """The configuration of a hosted repository. ``type`` and ``push_rules`` are the fixed part, the others settings."""

    fixed: ClassVar[tuple[str, ...]] = ("push_rules",)

    push_rules: Annotated[PushRules, meaning("Rules for pushes.")] = PushRules()
    deploy: Annotated[
        DeployRequirements | None, meaning("What every version in a bundle must have beside its POM.")
    ] = None
    policy: Annotated[HostedPolicy | None, meaning("Rules for uploads and for the packages that are served.")] = None

    def normalised(self) -> Self:
        """The configuration as it is stored. :raises Invalid: also if a key cannot be read"""
        if self.deploy is not None:
            read_certificates(self.deploy.trusted_keys)
        return super().normalised()


class VirtualConfig(schema.MergingConfig, frozen=True, kw_only=True, tag=RepositoryType.VIRTUAL.value):
    """
    The configuration of a virtual repository, see L{schema.MergingConfig}.

    The metadata of an artifact are joined from all members that are not hosted, unless ``resolution`` is first. A file
    is always that of the first member that has it. Snapshots go to the member ``publish_snapshots_to`` if that is set.
    """

    fixed: ClassVar[tuple[str, ...]] = (*schema.MergingConfig.fixed, "publish_snapshots_to")

    publish_snapshots_to: Annotated[
        Text | None,
        meaning(
            "The member to which snapshots go that are published to a virtual repository, if not "
            "to publish_to (Java only)."
        ),
    ] = None
    resolution: Annotated[
        Literal["first", "merge"], meaning("How the members of a virtual repository that are not hosted are joined.")
    ] = "merge"


CONFIGURATIONS = configuration.Configurations(
    "the Maven format", HostedConfig | ProxyConfig | VirtualConfig, part_aliases={"maven_push_rules": "push_rules"}
)

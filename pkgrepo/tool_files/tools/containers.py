"""docker, podman, skopeo, helm and others that take images."""

from __future__ import annotations

from pkgrepo.tool_files.values import Item, Setting, Syntax, ToolFile

HELPER = "pkgrepo"  # the program is docker-credential-pkgrepo


def docker_config(host: str) -> ToolFile:
    """``config.json`` of docker, which the others read, too: the credential helper of a registry."""
    return ToolFile("docker/config.json", Syntax.JSON, (Setting(("credHelpers", host), HELPER),))


def plain_registry(host: str) -> ToolFile:
    """A file of podman, skopeo and buildah by which they use a registry without TLS."""
    entry = Item(("registry",), {"location": host, "insecure": True}, "location")
    return ToolFile("registries.conf.d/pkgrepo.conf", Syntax.TOML, (entry,))

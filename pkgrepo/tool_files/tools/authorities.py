"""
Where tools are told the certificates of a private authority: the path of a file in PEM.

npm, pip, cargo and conda trust that file instead of the authorities that they come with; the others in addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from pkgrepo.tool_files.tools.python import NAME
from pkgrepo.tool_files.values import Setting, Syntax, ToolFile

# What a person does for tools whose files have no place for it; ``{host}`` is the server, ``{ca}`` the file.
HINTS: Final[Mapping[str, str]] = {
    "uv": "uv reads certificates from a variable: SSL_CERT_FILE={ca}",
    "go": "go reads certificates from a variable: SSL_CERT_FILE={ca} (on macOS and Windows from the system)",
    "docker": "as root: cp {ca} /etc/docker/certs.d/{host}/ca.crt",
    "podman": "cp {ca} ~/.config/containers/certs.d/{host}/ca.crt",
    "skopeo": "cp {ca} ~/.config/containers/certs.d/{host}/ca.crt",
    "helm": "helm push and pull --ca-file {ca}; helm repo add --ca-file {ca}",
    "maven": "keytool -importcert -file {ca} makes a trust store: mvn -Djavax.net.ssl.trustStore=FILE",
    "gradle": "keytool -importcert -file {ca} makes a trust store: systemProp.javax.net.ssl.trustStore=FILE",
}


def npmrc(ca: str) -> ToolFile:
    """``.npmrc`` of npm, pnpm, bun and yarn 1."""
    return ToolFile(".npmrc", Syntax.LINES, (Setting(("cafile",), ca),))


def yarnrc(ca: str, url: str) -> ToolFile:
    """``.yarnrc.yml`` of yarn 2 and later, for this host alone."""
    place = ("networkSettings", urlsplit(url).hostname or "", "httpsCaFilePath")
    return ToolFile(".yarnrc.yml", Syntax.YAML, (Setting(place, ca),))


def pip_conf(ca: str) -> ToolFile:
    """``pip.conf``."""
    return ToolFile("pip.conf", Syntax.INI, (Setting(("global", "cert"), ca),))


def pypirc(ca: str) -> ToolFile:
    """``.pypirc``, for the repository of this name alone."""
    return ToolFile(".pypirc", Syntax.INI, (Setting((NAME, "ca_cert"), ca),))


def poetry_config(ca: str) -> ToolFile:
    """``config.toml`` of poetry, for the source and the repository of this name alone."""
    return ToolFile("poetry/config.toml", Syntax.TOML, (Setting(("certificates", NAME, "cert"), ca),))


def cargo_config(ca: str) -> ToolFile:
    """``config.toml`` of cargo."""
    return ToolFile("cargo/config.toml", Syntax.TOML, (Setting(("http", "cainfo"), ca),))


def gemrc(ca: str) -> ToolFile:
    """``.gemrc``."""
    return ToolFile(".gemrc", Syntax.YAML, (Setting((":ssl_ca_cert",), ca),))


def bundle_config(ca: str) -> ToolFile:
    """``config`` of Bundler."""
    return ToolFile("bundle/config", Syntax.YAML, (Setting(("BUNDLE_SSL_CA_CERT",), ca),))


def condarc(ca: str) -> ToolFile:
    """``.condarc`` of conda and mamba."""
    return ToolFile(".condarc", Syntax.YAML, (Setting(("ssl_verify",), ca),))

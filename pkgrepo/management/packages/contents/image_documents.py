"""
Reads manifests, indexes and configurations of images for people who look (OCI image specification 1.1; pure).

A configuration is whatever bytes the publisher pushed: what is malformed in it is left out, and every list has a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.management.packages.schema import ImageStep, PlatformRecord
from pkgrepo.untrusted.strict_json import check_value_count, decode_as

MOST_VALUES: Final = 100_000  # in a document
MOST_PLATFORMS: Final = 24
MOST_STEPS: Final = 300
MOST_LABELS: Final = 100
LONGEST: Final = 2000  # characters of a command or a label

_COMMAND_PREFIXES: Final = ("/bin/sh -c #(nop) ", "/bin/sh -c ")


class Descriptor(msgspec.Struct):
    """A reference to content. Indexes say for which platform it is."""

    digest: str = ""
    size: int = 0
    mediaType: str = ""
    platform: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None


class ImageDocument(msgspec.Struct):
    """A manifest, with a configuration and layers, or an index, with manifests."""

    config: Descriptor | None = None
    layers: list[Descriptor] = []
    manifests: list[Descriptor] = []


class _Step(msgspec.Struct):
    created_by: str = ""
    empty_layer: bool = False


class _Settings(msgspec.Struct):
    Labels: dict[str, Any] | None = None
    Entrypoint: list[str] | None = None
    Cmd: list[str] | None = None
    WorkingDir: str = ""
    User: str = ""
    ExposedPorts: dict[str, Any] | None = None


class _Configuration(msgspec.Struct):
    architecture: str = ""
    os: str = ""
    variant: str = ""
    created: str = ""
    config: _Settings | None = None
    history: list[_Step] = []


def read_document(data: bytes) -> ImageDocument:
    """A manifest or an index. :raises Invalid: the bytes are no such document"""
    check_value_count(data, MOST_VALUES, "the manifest")
    return decode_as(data, ImageDocument, what="the manifest")


def is_attestation(descriptor: Descriptor) -> bool:
    """Whether an index lists this as a statement about another manifest, as BuildKit does."""
    return "vnd.docker.reference.digest" in (descriptor.annotations or {})


def describe_platform(
    digest: str, document: ImageDocument | None, configuration: bytes | None, listed: Mapping[str, Any] | None
) -> PlatformRecord:
    """
    What is known of the image for one platform.

    ``document`` and ``configuration`` are None where the server does not have them; ``listed`` is the platform that an
    index names.
    """
    found, named = _configuration(configuration), listed or {}
    settings = found.config or _Settings()
    layers = [] if document is None else document.layers
    return PlatformRecord(
        digest=digest,
        os=_text(named.get("os")) or found.os,
        architecture=_text(named.get("architecture")) or found.architecture,
        variant=_text(named.get("variant")) or found.variant,
        created=found.created[:40],
        size=sum(each.size for each in layers),
        stored=document is not None,
        layers=len(layers),
        steps=_steps(layers, found.history),
        labels={key[:200]: _text(value) for key, value in list((settings.Labels or {}).items())[:MOST_LABELS]},
        entrypoint=_words(settings.Entrypoint),
        command=_words(settings.Cmd),
        user=settings.User[:200],
        folder=settings.WorkingDir[:LONGEST],
        ports=[each[:20] for each in list(settings.ExposedPorts or {})[:MOST_LABELS]],
    )


def _configuration(data: bytes | None) -> _Configuration:
    if data is None:
        return _Configuration()
    try:
        check_value_count(data, MOST_VALUES, "the configuration")
        return decode_as(data, _Configuration, what="the configuration")
    except Invalid:
        return _Configuration()


def _steps(layers: Sequence[Descriptor], history: Sequence[_Step]) -> list[ImageStep]:
    """Commands with the layers that they made; without a history that fits, the layers alone."""
    if sum(not step.empty_layer for step in history) != len(layers):
        return [_step("", layer) for layer in layers[:MOST_STEPS]]
    rest = iter(layers)
    every = [_step(step.created_by, None if step.empty_layer else next(rest)) for step in history]
    return every[:MOST_STEPS]


def _step(command: str, layer: Descriptor | None) -> ImageStep:
    for prefix in _COMMAND_PREFIXES:
        command = command.removeprefix(prefix)
    if layer is None:
        return ImageStep(command=command.strip()[:LONGEST])
    return ImageStep(
        command=command.strip()[:LONGEST], digest=layer.digest, size=layer.size, media_type=layer.mediaType[:200]
    )


def _words(words: Sequence[str] | None) -> list[str]:
    return [each[:LONGEST] for each in (words or ())[:MOST_LABELS]]


def _text(value: Any) -> str:
    return value[:LONGEST] if isinstance(value, str) else ""

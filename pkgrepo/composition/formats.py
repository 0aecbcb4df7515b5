"""The list of package formats, and what the server gets from each of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from twisted.application.service import IService
from twisted.web.resource import IResource

from pkgrepo.config import Config
from pkgrepo.formats.conda.format import CondaFormat
from pkgrepo.formats.container.format import ContainerFormat
from pkgrepo.formats.maven.format import MavenFormat
from pkgrepo.formats.npm.format import NpmFormat
from pkgrepo.formats.python.format import PythonFormat
from pkgrepo.formats.rubygems.format import RubyFormat
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.interfaces import (
    IBackgroundFormat,
    ICachingFormat,
    IConfiguredFormat,
    IFormat,
    IIndexedFormat,
    IRootFormat,
    IWorkingFormat,
)

Formats = dict[str, IFormat]  # by name


def make_formats(config: Config) -> Formats:
    """Every format of the server. A new format is added here and nowhere else."""
    formats: tuple[IFormat, ...] = (
        CondaFormat(),
        ContainerFormat(
            service=config.container.service,
            ping=config.container.ping,
            trusted_keys=config.container.trusted_keys,
        ),
        MavenFormat(),
        NpmFormat(config.npm.advisories),
        PythonFormat(),
        RubyFormat(),
    )
    return {each.name: each for each in formats}


def check_settings(formats: Formats) -> None:
    """Check the server settings of all formats. :raises Invalid: one cannot be used"""
    for each in _providers(formats, IConfiguredFormat):
        each.check_settings()


def root_branches(formats: Formats, services: Services, token_service: IResource) -> dict[str, IResource]:
    """Resources of the formats at the root of the server, by the first segment of the path."""
    branches: dict[str, IResource] = {}
    for each in _providers(formats, IRootFormat):
        branches.update(each.branches(services, token_service))
    return branches


def ping_answers(formats: Formats) -> dict[bytes, Answer]:
    """Answers to the requests by which clients check their credentials, by raw path."""
    answers: dict[bytes, Answer] = {}
    for each in _providers(formats, IRootFormat):
        answers.update(each.ping_answers())
    return answers


def background_services(formats: Formats, services: Services, reactor: Any) -> list[IService]:
    """New services of formats that run in one process of the server at a time."""
    return [
        service
        for each in _providers(formats, IBackgroundFormat)
        for service in each.background_services(services, reactor)
    ]


def process_services(formats: Formats) -> list[IService]:
    """New services of formats that run in each process."""
    return [service for each in _providers(formats, IWorkingFormat) for service in each.process_services()]


def caches(formats: Formats) -> dict[str, ResponseCache[Any]]:
    """Caches in memory, by the name that the metrics give them."""
    found: dict[str, ResponseCache[Any]] = {}
    for each in _providers(formats, ICachingFormat):
        found.update(each.caches())
    return found


def indexed_formats(formats: Formats) -> dict[str, Any]:
    """The formats with index documents, by name; those of which packages can come from upstreams are proxied ones."""
    return {each.name: each for each in _providers(formats, IIndexedFormat)}


def _providers(formats: Formats, interface: Any) -> Iterable[Any]:
    return (each for each in formats.values() if interface.providedBy(each))

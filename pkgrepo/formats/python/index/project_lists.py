"""The list of all projects of a repository, see L{package_lists}: it shows the name of each project."""

from __future__ import annotations

from typing import Final

from pkgrepo.interfaces import Reader
from pkgrepo.repositories.publish.package_lists import ListForm, ListSource, PackageList
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories

from . import pages
from .indexing import CONTENT_TYPES, is_quarantined
from .pages import HTML_PAGE, JSON_PAGE


def all_names(reader: Reader, repository_id: int) -> list[tuple[str, str]]:
    """Keys and names of all projects that are not quarantined (PEP 792), by key."""
    hidden = {each.key for each in packages.packages_with_meta(reader, repository_id) if is_quarantined(each)}
    return [(key, name) for key, name in packages.package_names(reader, repository_id) if key not in hidden]


def _name(reader: Reader, repository_id: int, key: str) -> str | None:
    package = packages.find_package(reader, repository_id, key)
    return None if package is None or is_quarantined(package) else package.name


def _splice_json(serial: int, names: PackageList[str]) -> Spliced:
    return pages.project_list_json(serial, names.fragments(JSON_PAGE, pages.listed_json))


def _splice_html(serial: int, names: PackageList[str]) -> Spliced:
    return pages.project_list_html(serial, names.fragments(HTML_PAGE, pages.listed_html))


PROJECT_LISTS: Final = ListSource(
    serial=repositories.names_serial,
    read_all=all_names,
    read_one=_name,
    forms={
        JSON_PAGE: ListForm(CONTENT_TYPES[JSON_PAGE], _splice_json, zstd=True),
        HTML_PAGE: ListForm(CONTENT_TYPES[HTML_PAGE], _splice_html, zstd=True),
    },
)

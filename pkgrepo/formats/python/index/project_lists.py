"""
The list of all projects of a repository, see L{package_lists}.

It shows the name of each project; that of a hosted repository also the serial of its last change, for mirrors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from pkgrepo.interfaces import Reader
from pkgrepo.repositories.publish.package_lists import ListForm, ListSource, PackageList
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories

from . import pages
from .indexing import CONTENT_TYPES, is_quarantined
from .pages import HTML_PAGE, JSON_PAGE

Project = tuple[str, int]  # its name, and the serial of its last change
T = TypeVar("T")


def all_names(reader: Reader, repository_id: int) -> list[tuple[str, str]]:
    """Keys and names of all projects that are not quarantined (PEP 792), by key."""
    hidden = {each.key for each in packages.packages_with_meta(reader, repository_id) if is_quarantined(each)}
    return [(key, name) for key, name in packages.package_names(reader, repository_id) if key not in hidden]


def _all_projects(reader: Reader, repository_id: int) -> list[tuple[str, Project]]:
    hidden = {each.key for each in packages.packages_with_meta(reader, repository_id) if is_quarantined(each)}
    found = packages.package_serials(reader, repository_id)
    return [(key, (name, serial)) for key, name, serial in found if key not in hidden]


def _project(reader: Reader, repository_id: int, key: str) -> Project | None:
    package = packages.find_package(reader, repository_id, key)
    return None if package is None or is_quarantined(package) else (package.name, package.serial)


def _name(reader: Reader, repository_id: int, key: str) -> str | None:
    found = _project(reader, repository_id, key)
    return None if found is None else found[0]


def _forms(json: Callable[[Iterable[T]], bytes], html: Callable[[Iterable[T]], bytes]) -> dict[str, ListForm[T]]:
    def splice_json(serial: int, listed: PackageList[T]) -> Spliced:
        return pages.project_list_json(serial, listed.fragments(JSON_PAGE, json))

    def splice_html(serial: int, listed: PackageList[T]) -> Spliced:
        return pages.project_list_html(serial, listed.fragments(HTML_PAGE, html))

    return {
        JSON_PAGE: ListForm(CONTENT_TYPES[JSON_PAGE], splice_json, zstd=True),
        HTML_PAGE: ListForm(CONTENT_TYPES[HTML_PAGE], splice_html, zstd=True),
    }


# Of hosted repositories,
PROJECT_LISTS: Final[ListSource[Project]] = ListSource(
    serial=repositories.content_serial,
    read_all=_all_projects,
    read_one=_project,
    forms=_forms(pages.listed_json_with_serials, lambda projects: pages.listed_html(name for name, _ in projects)),
)
# and of the others, whose upstreams have serials of their own.
NAME_LISTS: Final[ListSource[str]] = ListSource(
    serial=repositories.names_serial,
    read_all=all_names,
    read_one=_name,
    forms=_forms(pages.listed_json, pages.listed_html),
)

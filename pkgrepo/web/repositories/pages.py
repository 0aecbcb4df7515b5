"""Packages, files, set-up and upstreams of a repository."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pkgrepo.http.answers import Answer
from pkgrepo.web.finding import find_repository
from pkgrepo.web.tables import Pages, PageTable
from pkgrepo.web.visits import Visit

PER_PAGE: Final = 50
PER_LEVEL: Final = 200  # files of a folder on one page


class RepositoryPages(Pages):
    """The pages of a repository that show what is in it."""

    pages: ClassVar = PageTable()

    @pages.get("/repositories/<storage>/<name>")
    async def packages(self, visit: Visit, storage: str, name: str) -> Answer:
        """The set-up card and the packages, with a filter."""
        repository = await find_repository(visit, storage, name)
        query: dict[str, Any] = {"limit": PER_PAGE}
        query |= {each: visit.query(each) for each in ("q", "sort", "cursor") if visit.query(each)}
        place = f"{storage}/{name}"
        listed = await visit.api("GET", "/repository/<repository>/packages", {"repository": place}, query=query)
        snippets = await visit.api("GET", "/repository/<repository>/setup", {"repository": place})
        return visit.page(
            "repositories/packages.html",
            repository=repository,
            tab="packages",
            listed=listed,
            order=visit.query("sort") or "name",
            snippets=snippets,
        )

    @pages.get("/repositories/<storage>/<name>/tree/")
    async def root(self, visit: Visit, storage: str, name: str) -> Answer:
        """The files and folders at the root of the repository."""
        return await self.tree(visit, storage, name, "")

    @pages.get("/repositories/<storage>/<name>/tree/<path:path>")
    async def tree(self, visit: Visit, storage: str, name: str, path: str) -> Answer:
        """The files and folders of a folder."""
        repository = await find_repository(visit, storage, name)
        query: dict[str, Any] = {"limit": PER_LEVEL}
        if visit.query("cursor"):
            query["cursor"] = visit.query("cursor")
        operation = "/repository/<repository>/tree/<path:path>"
        listed = await visit.api(
            "GET", operation, {"repository": f"{storage}/{name}", "path": path.strip("/")}, query=query
        )
        steps = [step for step in path.split("/") if step]
        above = [(step, "/".join(steps[: at + 1])) for at, step in enumerate(steps)]
        return visit.page("repositories/tree.html", repository=repository, tab="files", listed=listed, above=above)

    @pages.get("/repositories/<storage>/<name>/upstreams")
    async def upstreams(self, visit: Visit, storage: str, name: str) -> Answer:
        """The routes of a proxy repository, with their health and the figures of the cache."""
        repository = await find_repository(visit, storage, name)
        state = await visit.api("GET", "/repository/<repository>/upstream", {"repository": f"{storage}/{name}"})
        return visit.page("repositories/upstreams.html", repository=repository, tab="upstreams", state=state)

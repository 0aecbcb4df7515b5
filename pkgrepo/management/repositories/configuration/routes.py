"""The routes that read and replace the configuration of a repository, as a whole or one part."""

from __future__ import annotations

from typing import Any

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.interfaces import IFormat
from pkgrepo.management.api.access_rules import EDITORS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table, Value
from pkgrepo.management.repositories.schema import ConfigKey
from pkgrepo.model import Repository
from pkgrepo.proxy.definitions.storing import shown_config

from .parts import is_whole, part_name, parts, warnings_of, with_part
from .stored import ConfigurationHandlers

WARNINGS = "warnings"  # added to the configuration in answers


class Configuration(ConfigurationHandlers):
    """Reads and replaces configurations; what a GET returns can be sent back with PUT."""

    table = Table("repositories")

    @table.route(
        "GET",
        "/repository/<repository>/config",
        access=EDITORS,
        summary="Show the configuration",
        answer=dict[str, Any],
    )
    async def get(self, call: Call) -> dict[str, Any]:
        """The whole configuration, including defaults. A password or token in it is shown as ***."""
        return self._whole(await call.fresh_repository())

    @table.route(
        "PUT",
        "/repository/<repository>/config",
        access=EDITORS,
        summary="Replace the configuration",
        body=dict[str, Any],
        answer=dict[str, Any],
        audit="repository.configure",
        conditional=True,
    )
    async def put(self, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        """
        Parts that are absent get their defaults. A field warnings, as in answers, is ignored in the body.

        A password or token *** means the stored one of the route with the same address and user. The type cannot be
        changed (409).
        """
        repository = await call.fresh_repository()
        call.check_unchanged(self._whole(repository))
        changed = await self._replace(call, repository, _without_warnings(body), "")
        answer: dict[str, Any] = self._with_warnings(changed, self._whole(changed))
        return answer

    @table.route(
        "GET",
        "/repository/<repository>/configs",
        access=EDITORS,
        summary="List the parts of the configuration",
        answer=list[ConfigKey],
    )
    async def keys(self, call: Call) -> list[ConfigKey]:
        """The first key is the name of the format; the others are the parts that can be set."""
        format_ = self._format(call.repository)
        return [
            ConfigKey(key=format_.name, description="The configuration as a whole."),
            *(ConfigKey(key=key, description=part["description"]) for key, part in sorted(parts(format_).items())),
        ]

    @table.route(
        "GET",
        "/repository/<repository>/config/<key>",
        access=EDITORS,
        summary="Show one part of the configuration",
        answer=Any,
    )
    async def get_part(self, call: Call, key: str) -> Value:
        """A part that is not set is null. The name of the format as key gives the fixed part."""
        return Value(self._part(await call.fresh_repository(), key))

    @table.route(
        "PUT",
        "/repository/<repository>/config/<key>",
        access=EDITORS,
        summary="Replace one part of the configuration",
        body=Any,
        answer=Any,
        audit="repository.configure",
        conditional=True,
    )
    async def put_part(self, call: Call, body: Any, key: str) -> Value:
        """A null body resets the part to its default. The name of the format as key replaces the fixed part."""
        repository = await call.fresh_repository()
        call.check_unchanged(self._part(repository, key))
        return await self._replace_part(call, repository, key, _without_warnings(body))

    @table.route(
        "PATCH",
        "/repository/<repository>/config/<key>",
        access=EDITORS,
        summary="Change fields of one part of the configuration",
        body=dict[str, Any],
        answer=Any,
        audit="repository.configure",
        conditional=True,
    )
    async def patch_part(self, call: Call, body: dict[str, Any], key: str) -> Value:
        """
        Sets the fields in the body, such as one of push_rules, and leaves the others (JSON Merge Patch, RFC 7396).

        A null resets a field to its default, if it has one. Only parts that are objects can be changed so.
        """
        repository = await call.fresh_repository()
        before = self._part(repository, key)
        call.check_unchanged(before)
        if not isinstance(before, dict | None):
            raise Invalid(f"{key} is no object: replace it with PUT")
        return await self._replace_part(call, repository, key, _merged(before, _without_warnings(body)))

    # Below

    async def _replace_part(self, call: Call, repository: Repository, key: str, value: Any) -> Value:
        if is_whole(self._format(repository), key):
            if not isinstance(value, dict):
                raise Invalid("a configuration is an object")
            config, pointer = {**repository.settings, **value}, ""
        else:
            name = part_name(self._format(repository), key)
            config, pointer = with_part(self._whole(repository), name, value), f"/{name}"
        repository = await self._replace(call, repository, config, pointer)
        return Value(self._with_warnings(repository, self._part(repository, key)))

    def _with_warnings(self, repository: Repository, answer: Any) -> Any:
        warnings = warnings_of(self._services, repository)
        return {**answer, WARNINGS: warnings} if warnings and isinstance(answer, dict) else answer

    def _format(self, repository: Repository) -> IFormat:
        return self._services.formats[repository.format]

    def _part(self, repository: Repository, key: str) -> Any:
        format_ = self._format(repository)
        if is_whole(format_, key):
            return shown_config(repository, self._registry)
        name = part_name(format_, key)
        if name not in parts(format_) and not name.startswith("x_"):
            raise NotFound("configuration key", key)
        return self._whole(repository).get(name)


def _merged(before: Any, patch: Any) -> Any:
    """The value after a patch (RFC 7396 section 2)."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = _merged(kept.get(name), value)
    return kept


def _without_warnings(body: Any) -> Any:
    """The body without the warnings of an earlier answer."""
    return {key: value for key, value in body.items() if key != WARNINGS} if isinstance(body, dict) else body

"""
The configurations of repositories, as far as all formats share them.

A repository type is a class here, whose tag is its value of ``RepositoryType``. A format subclasses it to add its own
fields, and names its classes, joined with ``|``, in its ``Configurations``: there a format gains a type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, get_args

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.model import RepositoryType
from pkgrepo.model.structs import meaning


class Auth(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Whether reads of a public repository need credentials."""

    enabled: Annotated[bool, meaning("Reading needs a login or a token, also while the repository is public.")] = False


class PushRules(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The rules for pushes that all formats have. They apply to all changes of packages, removals included."""

    must_be_project_member: Annotated[
        bool, meaning("Only members of the project that owns a name publish, change and remove it.")
    ] = False
    auto_create_projects: Annotated[
        bool,
        meaning(
            "With must_be_project_member: the first pusher of a name that no project owns becomes "
            "the owner of a new project, instead of being refused."
        ),
    ] = False
    must_use_auth_token_for_push: Annotated[
        bool, meaning("Passwords neither publish nor remove, only access tokens do.")
    ] = False


class RepositoryConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="type"):
    """
    What the configurations of all types have.

    ``type`` and the fields named in ``fixed`` are the fixed object. The other fields are settings, None where not set.
    """

    fixed: ClassVar[tuple[str, ...]] = ()

    auth: Annotated[Auth | None, meaning("Whether reads of a public repository need credentials.")] = None
    page: Annotated[str | None, meaning("A text in Markdown that the console shows above the packages.")] = None

    def normalised(self) -> Self:
        """
        The configuration in the form in which it is stored.

        :raises Invalid: for what the types of the fields do not express, with the JSON pointer of the wrong value
        """
        return self


class HostedConfig(RepositoryConfig, frozen=True, tag=RepositoryType.HOSTED.value):
    """The configuration of a hosted repository."""


@frozen
class Configurations:
    """
    The configurations that one format takes.

    ``what`` names the format in messages. ``types`` is a subclass of L{RepositoryConfig}, or several joined with ``|``,
    of which ``type`` selects one.
    """

    what: str
    types: type[RepositoryConfig] | UnionType

    def validate(self, config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """
        Split a configuration into the fixed object with its defaults, and the settings; ``x_`` keys are kept.

        :raises Invalid: an unknown key or a wrong value, with its JSON pointer
        """
        type_ = config.get("type", RepositoryType.HOSTED.value)
        if type_ in set(RepositoryType) - self._served():
            raise Invalid(f"{type_} repositories of {self.what} are not available in this version", "/type")
        settings = {key: value for key, value in config.items() if key.startswith("x_")}
        rest = {key: value for key, value in config.items() if key not in settings}
        try:
            given: RepositoryConfig = msgspec.convert({**rest, "type": type_}, self.types)
        except msgspec.ValidationError as error:
            raise Invalid(*_explain(str(error))) from None
        parsed = given.normalised()
        values = msgspec.to_builtins(parsed)
        fixed = {key: values.pop(key) for key in ("type", *parsed.fixed)}
        return fixed, settings | {key: value for key, value in values.items() if value is not None}

    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the whole configuration."""
        return msgspec.json.schema(self.types)

    def _served(self) -> set[object]:
        return {each.__struct_config__.tag for each in get_args(self.types) or (self.types,)}


def _explain(message: str) -> tuple[str, str]:
    """Split the message of a msgspec error into its sentence and a JSON pointer."""
    text, _, where = message.partition(" - at `$")
    pointer = where.rstrip("`").replace(".", "/").replace("[", "/").replace("]", "")
    unknown = re.search(r"unknown field `([^`]*)`", text)
    return text, f"{pointer}/{unknown[1]}" if unknown else pointer

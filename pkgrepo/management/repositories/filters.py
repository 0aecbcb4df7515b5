"""The filters of the list of repositories."""

from __future__ import annotations

from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import get_format, parse_visibility
from pkgrepo.management.api.route import Parameter
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Repository

FILTERS = (
    Parameter("format", "Only repositories of this format."),
    Parameter("type", "Only repositories of this type: Hosted, Proxy or Virtual."),
    Parameter("storage", "Only repositories in this storage (name or id)."),
    Parameter("visibility", "Only repositories with this visibility: public, private or hidden."),
    Parameter("q", "Only repositories whose path or description contains this text."),
    Parameter("include_usage", "Whether to return the usage fields; they are null otherwise.", "boolean"),
)


def matches(services: ManagementServices, call: Call, repository: Repository) -> bool:
    """Whether the repository matches the filters of the query."""
    wanted_format, storage, text = call.query("format"), call.query("storage"), call.query("q").casefold()
    if wanted_format and get_format(services.formats, wanted_format, "format").name != repository.format:
        return False
    if call.query("type") and call.query("type").casefold() != repository.type.casefold():
        return False
    uid = services.shared.registry.storage(repository.storage_id).uid
    if storage and storage.casefold() not in (uid, repository.storage_name.casefold()):
        return False
    if call.query("visibility") and parse_visibility(call.query("visibility"), "visibility") != repository.visibility:
        return False
    return text in f"{repository.path}\n{repository.description}".casefold()

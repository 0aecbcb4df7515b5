"""What a server has stored at a path."""

from __future__ import annotations

from pkgrepo.commands.http.failures import Failed
from pkgrepo.commands.remote.client import Client


async def stored_digest(client: Client, repository: str, path: str) -> str | None:
    """
    The sha256 of a stored file as hex, by its path below the repository.

    None if the server does not tell, as of a document that it makes, or of what a virtual repository has passed on.
    """
    try:
        found = await client.get("repository", repository, "tree", *path.split("/"))
    except Failed as error:
        if error.status not in (401, 403, 404):
            raise
        return None
    items = found["items"]
    if len(items) != 1 or items[0]["path"] != path or not items[0]["digest"]:
        return None
    return str(items[0]["digest"]).removeprefix("sha256:")

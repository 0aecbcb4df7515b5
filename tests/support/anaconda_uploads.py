"""Uploads as anaconda-client makes them, by a plain HTTP client."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import urlsplit

from tests.support.conda_packages import make_conda
from tests.support.http_client import Field, HttpClient, Reply


class AnacondaUpload:
    """
    One upload to the server at ``url`` by its three requests; ``where`` is a client of the channel with credentials.

    ``staged`` are fields of the document that begins it.
    """

    def __init__(
        self,
        url: str,
        where: HttpClient,
        name: str = "demo",
        version: str = "1.0",
        *,
        data: bytes | None = None,
        **staged: Any,
    ) -> None:
        self.where = where
        self.file = f"{name}-{version}-py_0.conda"
        self.target = f"any/{name}/{version}/noarch/{self.file}"
        self.data = make_conda(name, version) if data is None else data
        self.strangers = HttpClient(url)
        self.staged = where.post_json(f"/stage/{self.target}", {"distribution_type": "conda", **staged})

    def post(self, data: bytes | None = None, **fields: str) -> Reply:
        """Send the file with the fields of the form that the client sends; empty ones are left out."""
        data = self.data if data is None else data
        answer = self.staged.json
        md5 = base64.b64encode(hashlib.md5(data).digest()).decode()
        form = {**answer["form_data"], "Content-Length": str(len(data)), "Content-MD5": md5, **fields}
        parts: list[Field] = [(name, text) for name, text in form.items() if text]
        return self.strangers.post_form(self.path, [*parts, ("file", self.file, data)])

    @property
    def path(self) -> str:
        """The path that takes the file."""
        return urlsplit(self.staged.json["post_url"]).path

    def commit(self, where: HttpClient | None = None, **more: Any) -> Reply:
        """Publish the file, perhaps with other credentials."""
        return (where or self.where).post_json(
            f"/commit/{self.target}", {"dist_id": self.staged.json["dist_id"], **more}
        )

"""A Python index as upstream: simple pages in JSON and HTML, files, and metadata (PEPs 503, 592, 658, 691, 700)."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from packaging.utils import canonicalize_name

from tests.support.python_packages import Fields, make_metadata, make_sdist, make_wheel
from tests.support.upstreams.messages import Answer, Request, etag_of
from tests.support.upstreams.server import UNKNOWN, ScriptedUpstream

PUBLISHED = "2024-01-01T00:00:00.000000Z"
JSON = "application/vnd.pypi.simple.v1+json"
HTML = "application/vnd.pypi.simple.v1+html"


class PythonUpstream(ScriptedUpstream):
    """
    An index of files added with L{add}; C{simple} is its address.

    Files are at another server if C{files} is given, which is started and stopped by the test. C{json}: pages are
    offered in JSON as well. C{digests}: pages have the digests of files.
    """

    def __init__(
        self, *, files: ScriptedUpstream | None = None, json: bool = True, digests: bool = True, **options: Any
    ) -> None:
        super().__init__(**options)
        self.files = files or self
        self.json = json
        self.digests = digests
        self.projects: dict[str, list[dict[str, Any]]] = {}

    @property
    def simple(self) -> str:
        return f"{self.url}/simple/"

    def add(
        self,
        project: str,
        version: str = "1.0",
        *,
        requires: Sequence[str] = (),
        requires_python: str | None = None,
        yanked: bool | str = False,
        published: str = PUBLISHED,
        sdist: bool = False,
        metadata: bool = True,
        license: str = "",
        pad: int = 0,
        extra_files: Mapping[str, bytes] | None = None,
        **members: Any,
    ) -> tuple[str, bytes]:
        """
        Publish a wheel or source distribution. Returns its file name and bytes.

        ``requires`` are dependencies; ``metadata``: the page offers its metadata; ``pad`` bytes are added to it, and
        ``extra_files``; ``members`` are additional members of the file in the page.
        """
        fields: Fields = [("Requires-Dist", each) for each in requires]
        fields = [*fields, *([("License", license)] if license else [])]
        make = make_sdist if sdist else make_wheel
        filename, data = make(
            project, version, requires_python=requires_python, fields=fields, pad=pad, extra_files=extra_files
        )
        file: dict[str, Any] = {
            "filename": filename,
            "url": self.file_url(filename),
            "hashes": {"sha256": hashlib.sha256(data).hexdigest()} if self.digests else {},
            "size": len(data),
            "upload-time": published,
            "yanked": yanked,
            "version": version,
        }
        if requires_python is not None:
            file["requires-python"] = requires_python
        self.files.serve(self.file_path(filename), Answer(body=data, fields={"ETag": etag_of(data)}))
        if metadata and not sdist:
            core = make_metadata(project, version, requires_python=requires_python, fields=fields)
            file["core-metadata"] = {"sha256": hashlib.sha256(core).hexdigest()}
            self.files.serve(f"{self.file_path(filename)}.metadata", core)
        self.projects.setdefault(canonicalize_name(project), []).append({**file, **members})
        return filename, data

    def file_path(self, filename: str) -> str:
        """The path of a file."""
        return f"/packages/{hashlib.sha256(filename.encode()).hexdigest()[:4]}/{filename}"

    def file_url(self, filename: str) -> str:
        """The URL of a file; the server of files must be listening."""
        return f"{self.files.url}{self.file_path(filename)}"

    def path(self, project: str) -> str:
        """The path of a project's page."""
        return f"/simple/{project}/"

    def answer(self, request: Request) -> Answer:
        """A document of L{serve}, the list of projects, or a project's page."""
        found = self.documents.get(request.path)
        if found is not None or not request.path.startswith("/simple/"):
            return found or UNKNOWN
        name = request.path.removeprefix("/simple/").removesuffix("/")
        as_json = self.json and request.accepts(JSON)
        if not name:
            return _page(self._index(as_json), as_json)
        if name not in self.projects:
            return UNKNOWN
        if not request.path.endswith("/"):
            return Answer(301, fields={"Location": f"/simple/{name}/"})
        files = self.projects[name]
        return _page(_project_json(name, files) if as_json else _project_html(name, files), as_json)

    def _index(self, as_json: bool) -> bytes:
        if as_json:
            projects = [{"name": name} for name in self.projects]
            return json.dumps({"meta": {"api-version": "1.4"}, "projects": projects}).encode()
        return "".join(f'<a href="/simple/{name}/">{name}</a>\n' for name in self.projects).encode()


def _project_json(name: str, files: Sequence[Mapping[str, Any]]) -> bytes:
    versions = list(dict.fromkeys(file["version"] for file in files))
    listed = [{key: value for key, value in file.items() if key != "version"} for file in files]
    document = {"meta": {"api-version": "1.4"}, "name": name, "versions": versions, "files": listed}
    return json.dumps(document).encode()


def _project_html(name: str, files: Sequence[Mapping[str, Any]]) -> bytes:
    lines = [f"<!DOCTYPE html>\n<html><head><title>Links for {name}</title></head><body>\n"]
    for file in files:
        attributes: dict[str, str] = {"href": file["url"]}
        for algorithm, digest in file["hashes"].items():
            attributes["href"] += f"#{algorithm}={digest}"
        if "requires-python" in file:
            attributes["data-requires-python"] = file["requires-python"]
        if file["yanked"] is not False:
            attributes["data-yanked"] = "" if file["yanked"] is True else file["yanked"]
        if "core-metadata" in file:
            attributes["data-core-metadata"] = f"sha256={file['core-metadata']['sha256']}"
        written = " ".join(f'{key}="{html.escape(value)}"' for key, value in attributes.items())
        lines.append(f"<a {written}>{file['filename']}</a><br/>\n")
    return "".join([*lines, "</body></html>\n"]).encode()


def _page(body: bytes, as_json: bool) -> Answer:
    fields = {"Content-Type": JSON if as_json else HTML, "ETag": etag_of(body), "Vary": "Accept"}
    return Answer(body=body, fields=fields, ranges=False, compress=True)

"""
The management API, asked for what its OpenAPI document describes and for less, by callers of each kind.

No request ends with a status that the document does not name for it, or above 500; the body of each response fits its
schema; and no caller gets done what the permission in the document does not allow them. Values are made from the
schemas: some fit, in some of which one thing is odd, and names are mostly those of what is there.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import jsonschema
from attrs import Factory, define, frozen

from tests.support.first_publishes import REPOSITORIES, Publisher
from tests.support.http_client import HttpClient, Reply
from tests.support.inprocess_server import PASSWORD
from tests.support.server_process import ServerProcess, restarts

from .mutations import VALUES

ADMIN: Final = ("admin", PASSWORD)
OTHER: Final = "a horse of another colour"
EPISODE: Final = 150  # requests, after which what they have removed is made again
DEEPEST: Final = 5  # of values; deeper ones are as short as they may be

# The callers, with the fields of their accounts and their actions in the repositories
CALLERS: Final[Mapping[str, tuple[Mapping[str, Any], Sequence[str]]]] = {
    "reader": ({}, ("read",)),
    "writer": ({}, ("read", "write")),
    "usermanager": ({"user_manager": True}, ()),
    "systemmanager": ({"system_manager": True}, ()),
    "secondadmin": ({"admin": True}, ()),
}
# Who may do what a permission says, as it begins in the document; of those that are not here anybody may
ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "admin.": frozenset({"secondadmin"}),
    "system manager or admin": frozenset({"systemmanager", "secondadmin"}),
    "user manager or admin": frozenset({"usermanager", "secondadmin"}),
    "the action read in the repository": frozenset({"reader", "writer", "systemmanager", "secondadmin"}),
    "the action write in the repository": frozenset({"writer", "secondadmin"}),
    "the action overwrite in the repository": frozenset({"secondadmin"}),
    "the action delete in the repository": frozenset({"secondadmin"}),
    "the action edit in the repository": frozenset({"systemmanager", "secondadmin"}),
    "the action admin in the repository": frozenset({"systemmanager", "secondadmin"}),
    "an active user": frozenset(CALLERS),
}
ODD: Final = ("", "..", "%00", "a/b", "\u00e4", "'", "x" * 300, "-1", "0", "null", "9" * 20, "\u2028", "*", "main/none")


TIMES: Final = ("2024-01-02T03:04:05Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00", "2024")


@frozen
class Operation:
    """One method of a path, as the document has it."""

    method: str
    path: str
    described: Mapping[str, Any]

    @property
    def permission(self) -> str:
        """Who may call it."""
        return str(self.described["description"]).rpartition("Required permission: ")[2]

    def allows(self, caller: str) -> bool:
        """Whether a caller may have it done."""
        found = [allowed for begin, allowed in ALLOWED.items() if self.permission.startswith(begin)]
        return not found or "or for packages of it" in self.permission or caller in found[0]


@define(slots=False)
class ApiFuzzer:
    """
    Requests to a server, which belongs to the test: they change and remove whatever they can.

    ``wrong`` are sentences about what should not be; ``counts`` are statuses. ``known`` are names of what is there, by
    the name of the parameter.
    """

    url: str
    seed: int
    wrong: list[str] = Factory(list)
    counts: Counter[int] = Factory(Counter)
    known: dict[str, list[str]] = Factory(dict)

    def __attrs_post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._document = HttpClient(self.url).get("/api/openapi.json").json
        self._operations = [
            Operation(method.upper(), path, described)
            for path, methods in self._document["paths"].items()
            for method, described in methods.items()
            if "application/x-ndjson" not in json.dumps(described["responses"])  # it does not end
        ]
        self._seen: set[str] = set()

    def run(self, requests: int, seconds: float = float("inf")) -> None:
        """Send so many requests, or for so long; each operation is asked for about as often as the others."""
        ends_at = time.monotonic() + seconds
        waiting: list[Operation] = []
        for number in range(requests):
            if number % EPISODE == 0:
                self.prepare()
            if time.monotonic() > ends_at:
                return
            waiting = waiting or self._chance.sample(self._operations, len(self._operations))
            operation = waiting.pop()
            caller = self._chance.choice(["anonymous", *CALLERS, "secondadmin", "secondadmin"])
            self._ask(operation, caller)

    def prepare(self) -> None:
        """The accounts, repositories and packages that requests are about; those that are there stay."""
        admin = HttpClient(self.url, ADMIN)

        def send(method: str, path: str, value: object) -> None:
            admin.post_json(f"/api{path}", value, method)

        for name, (fields, actions) in CALLERS.items():
            send("POST", "/users", {"username": name, "password": OTHER, **fields})
            send("PUT", f"/users/{name}/password", {"password": OTHER})
            send("PATCH", f"/users/{name}", {"active": True, **fields})
            given = [{"repository": f"main/{each}", "actions": list(actions)} for each in REPOSITORIES.values()]
            send("PUT", f"/users/{name}/permissions", {"repositories": given if actions else []})
        publisher = Publisher(self.url, ADMIN)
        for format_, name in REPOSITORIES.items():
            value = {"name": name, "storage": "main", "format": format_, "config": {"type": "Hosted"}}
            send("POST", "/repository", {**value, "visibility": "private"})
            send("PATCH", f"/repository/main%2F{name}", {"active": True, "visibility": "private"})
            try:
                publisher.publish(format_, "first", "1.0.0")
            except AssertionError:
                continue  # it is there, or a request before has forbidden it
        self.known = {
            "repository": [f"main/{name}" for name in REPOSITORIES.values()],
            "package": ["first", "com.example:first", "example.com/first"],
            "version": ["1.0.0", "1.0"],
            "tag": ["latest", "v1"],
            "name": ["main", *CALLERS, "py"],
            "storage": ["main"],
            "format": list(REPOSITORIES),
            "username": list(CALLERS),
            "key": ["trash", "first", *CALLERS],
            "id": ["1", "2", "3"],
        }

    def _ask(self, operation: Operation, caller: str) -> None:
        path, described = operation.path, operation.described
        query: list[str] = []
        headers: dict[str, str] = {}
        for each in described["parameters"]:
            if each["in"] == "path":
                path = path.replace(f"{{{each['name']}}}", quote(self._name(each["name"]), safe=""))
            elif self._chance.random() < 0.3:
                value = self._name(each["name"]) if self._chance.random() < 0.3 else self._value(each["schema"])
                text = value if isinstance(value, str) else json.dumps(value)
                if each["in"] == "query":
                    query.append(f"{each['name']}={quote(text.encode('utf-8', 'replace'))}")
        body = b""
        media = described.get("requestBody", {}).get("content", {})
        if "application/json" in media:
            value = self._value(media["application/json"]["schema"])
            body = json.dumps(value, ensure_ascii=self._chance.random() < 0.8).encode("utf-8", "surrogatepass")
            headers["Content-Type"] = "application/json"
        elif media:
            body, headers["Content-Type"] = b"--b\r\n" + self._chance.randbytes(40), "multipart/form-data; boundary=b"
        auth = () if caller == "anonymous" else (caller, OTHER)
        address = f"/api{path}" + ("?" + "&".join(query) if query else "")
        reply = HttpClient(self.url).as_user(*auth).ask(operation.method, address, body or None, headers)
        self.counts[reply.status] += 1
        self._learn(reply)
        for why in self._faults(operation, caller, reply):
            self._tell(operation, caller, address, body, why)

    def _faults(self, operation: Operation, caller: str, reply: Reply) -> Iterator[str]:
        named: Mapping[str, Any] = operation.described["responses"]
        if reply.status == 401 and caller != "anonymous":
            return  # an account that a request before has changed
        if reply.status >= 500 or str(reply.status) not in named:
            yield f"status {reply.status}, which is not described: {reply.body[:300]!r}"
            return
        if reply.status < 300 and not operation.allows(caller):
            yield f"it was done, and needs: {operation.permission}"
        media = reply.headers.get("content-type", "").partition(";")[0]
        content = named[str(reply.status)].get("content", {})
        if reply.body and media not in content:
            yield f"{media}, which is not described for {reply.status}: {reply.body[:300]!r}"
        schema = content.get(media, {}).get("schema")
        if schema is None or not media.endswith("json"):
            return
        whole = {**schema, "components": self._document["components"]}
        try:
            jsonschema.Draft202012Validator(whole).validate(reply.json)
        except jsonschema.ValidationError as error:
            yield f"its body does not fit the schema at {list(error.absolute_path)}: {error.message[:300]}"
        except ValueError as error:
            yield f"its body is not JSON: {error}"

    def _tell(self, operation: Operation, caller: str, address: str, body: bytes, why: str) -> None:
        """Note a fault, once for each operation and kind."""
        kind = f"{operation.method} {operation.path} {re.sub('[0-9]+', '', why[:40])}"
        if kind not in self._seen:
            self._seen.add(kind)
            self.wrong.append(f"{operation.method} {address} by {caller} with {body[:500]!r}: {why}")

    def _learn(self, reply: Reply) -> None:
        """Keep some of the names and ids that responses have, for later requests."""
        if reply.status >= 300 or "json" not in reply.headers.get("content-type", ""):
            return
        waiting = [reply.json]
        while waiting and len(waiting) < 200:
            each = waiting.pop()
            if isinstance(each, list):
                waiting += each[:5]
            elif isinstance(each, dict):
                waiting += [value for value in each.values() if isinstance(value, (dict, list))]
                for key in ("id", "key", "name", "version", "username", "path", "tag", "delivery", "place", "block"):
                    if isinstance(each.get(key), (str, int)) and each[key]:  # an empty one is another path
                        known = self.known.setdefault(key, [])
                        known[20:] = [str(each[key])]

    def _name(self, parameter: str) -> str:
        known = self.known.get(parameter, [])
        if known and self._chance.random() < 0.85:
            return self._chance.choice(known)
        return self._chance.choice(ODD[1:])

    def _value(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        """A value that fits a schema; sometimes one that does not."""
        if self._chance.random() < 0.04:
            return self._chance.choice(VALUES)
        if "$ref" in schema:
            return self._value(self._document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], depth + 1)
        if "anyOf" in schema:
            return self._value(self._chance.choice(schema["anyOf"]), depth + 1)
        if "enum" in schema:
            return self._chance.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            most = min(schema.get("maxItems", 3), 3 if depth < DEEPEST else 0)
            least = schema.get("minItems", 0)
            count = max(least, self._chance.randint(0, most))
            return [self._value(schema.get("items", {}), depth + 1) for _ in range(count)]
        if kind in ("integer", "number"):
            least, most = schema.get("minimum", -1), schema.get("maximum", 2**53)
            return self._chance.choice((least, most, least + 1, self._chance.randint(int(least), int(most))))
        if kind == "boolean":
            return self._chance.random() < 0.5
        if kind == "null":
            return None
        return self._text(schema)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        found = {}
        for name, each in schema.get("properties", {}).items():
            if name in schema.get("required", ()) or (depth < DEEPEST and self._chance.random() < 0.4):
                known = self.known.get(name)
                is_known = known is not None and self._chance.random() < 0.6
                found[name] = self._chance.choice(known) if known and is_known else self._value(each, depth + 1)
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and depth < DEEPEST:
            found |= {self._text({}): self._value(more, depth + 1) for _ in range(self._chance.randint(0, 2))}
        return found

    def _text(self, schema: Mapping[str, Any]) -> str:
        if schema.get("format") == "date-time":
            return self._chance.choice(TIMES)
        words = ("first", "main/py", "*", "a-b", "1.0", ">=1", "a@b.example", "http://127.0.0.1:9/", *CALLERS, *ODD)
        text = self._chance.choice(words)
        return text[: schema.get("maxLength", 1000)].ljust(min(schema.get("minLength", 0), 1000), "a")


@contextmanager
def serving(folder: Path) -> Iterator[ServerProcess]:
    """A server for requests of any kind."""
    settings = 'limits.login_failures = 1000\nproxy.allow_private = ["0.0.0.0/0"]\n'
    environ = {"PKGREPO_ADMIN_USER": ADMIN[0], "PKGREPO_ADMIN_PASSWORD": ADMIN[1]}
    with restarts(folder, settings, environ) as start:
        yield start()


def traceback_of(server: ServerProcess) -> Iterator[str]:
    """A traceback in the output of a server, once."""
    if "Traceback" in server.output:
        yield "in the server's output: " + server.output[server.output.index("Traceback") :][:3000]
        server.output = ""  # it is told


def run(folder: Path, requests: int, seed: int, seconds: float = float("inf")) -> ApiFuzzer:
    """Send so many requests to a server of its own, or for so long; a traceback in its output is a fault, too."""
    with serving(folder) as server:
        fuzzer = ApiFuzzer(server.url, seed)
        fuzzer.run(requests, seconds)
        fuzzer.wrong += traceback_of(server)
    return fuzzer

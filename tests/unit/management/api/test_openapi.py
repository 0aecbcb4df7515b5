"""The OpenAPI document describes all routes and nothing else."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import MagicMock

from openapi_spec_validator import OpenAPIV31SpecValidator

from pkgrepo.management.api.openapi import openapi_path
from pkgrepo.management.app import EVERY_TABLE, ManagementApp
from tests.support.memory_server import Stack

METHODS = {"get", "post", "put", "patch", "delete"}


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        found = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return found.union(*(references(each) for each in value.values()))
    if isinstance(value, list):
        return set().union(*(references(each) for each in value))
    return set()


def test_every_path_that_is_served_is_in_the_document() -> None:
    management = ManagementApp(MagicMock())  # no route is called
    document = management.description.describe()
    served = set()
    for rule in management.dispatcher.application().url_map.iter_rules():
        path = re.sub(r"<(?:path:)?([a-z]+)>", r"{\1}", rule.rule)
        served |= {(method, path) for method in rule.methods - {"HEAD", "OPTIONS"}}
    described = {(method.upper(), path) for path, operations in document["paths"].items() for method in operations}
    assert served == described
    assert len(served) > 80


def test_every_status_of_the_dispatcher_is_in_the_document() -> None:
    document = ManagementApp(MagicMock()).description.describe()
    routes = [route for table in EVERY_TABLE for route in table.routes if route.asks]  # these change nothing
    asking = {(method.lower(), openapi_path(path)) for route in routes for method, path in route.addresses}
    assert ("post", "/osv/v1/query") in asking
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            named = set(operation["responses"])
            assert {"400", "401", "403", "404", "422", "429", "500", "503"} <= named, (method, path)
            assert {"409", "413", "507"} <= named or method == "get" or (method, path) in asking, (method, path)
            conditional = any(each["name"] == "If-Match" for each in operation["parameters"])
            assert ("412" in named) == conditional, (method, path)


def test_every_field_of_every_body_and_answer_has_a_meaning() -> None:
    schemas = ManagementApp(MagicMock()).description.describe()["components"]["schemas"]
    fields = {
        (name, field): each for name, schema in schemas.items() for field, each in schema.get("properties", {}).items()
    }
    assert len(fields) > 1500
    assert [place for place, each in fields.items() if not each.get("description", "").strip()] == []


async def test_the_document_is_complete_and_consistent(stack: Stack) -> None:
    document = await stack.ok("GET", "/openapi.json", who=None)
    assert document["openapi"] == "3.1.0"
    schemas = document["components"]["schemas"]
    assert references(document) == {f"#/components/schemas/{name}" for name in schemas}
    identifiers = []
    for path, operations in document["paths"].items():
        assert set(operations) <= METHODS
        for method, operation in operations.items():
            identifiers.append(operation["operationId"])
            named = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert named == set(re.findall(r"\{([a-z]+)\}", path))
            assert operation["summary"]
            assert not operation["summary"].endswith(".")
            assert any(status.startswith("2") for status in operation["responses"])
            assert ("requestBody" in operation) <= (method != "get")
    assert len(set(identifiers)) == len(identifiers)


async def test_answers_have_the_fields_that_are_described(stack: Stack) -> None:
    document = await stack.ok("GET", "/openapi.json", who=None)
    schemas = document["components"]["schemas"]
    made = await stack.add_repository()
    await stack.publish("main/py", "demo", "1.0")
    token = await stack.ok("POST", "/user/token", {"name": "x"})
    for path, name in (
        ("/info", "Info"),
        ("/storage/main", "StorageRecord"),
        (f"/repository/{made['id']}", "RepositoryRecord"),
        ("/user/me", "UserRecord"),
        (f"/user/token/{token['id']}", "TokenRecord"),
        ("/package/main%2Fpy/demo", "PackageRecord"),
        ("/package/main%2Fpy/demo/versions/1.0", "VersionRecord"),
    ):
        assert set(await stack.ok("GET", path)) == set(schemas[name]["properties"]), path


async def test_the_html_page_loads_nothing_and_has_no_scripts(stack: Stack) -> None:
    reply = await stack.api("GET", "/docs", who=None)
    text = reply.body.decode()
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "/api/repository/{repository}" in text
    assert "<script" not in text
    assert "http://" not in text.replace("http://registry.example", "")


async def test_the_document_is_valid(stack: Stack) -> None:
    OpenAPIV31SpecValidator(await stack.ok("GET", "/openapi.json", who=None)).validate()

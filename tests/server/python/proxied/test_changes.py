"""Changes that are sent to proxies and virtual repositories."""

from __future__ import annotations

import pytest

from tests.support.python_packages import make_wheel
from tests.support.upload_forms import twine

pytestmark = pytest.mark.server


@pytest.mark.parametrize("name", ["mirror", "readable"])
def test_repositories_without_a_target_take_no_changes(at, upstream, name):
    where = at(name)
    upstream.add("fixed")
    filename, data = make_wheel("fixed", "2.0")
    for reply in (
        where.post_form("/", twine("fixed", "2.0", filename, data)),
        where.post_form("/legacy/", twine("fixed", "2.0", filename, data)),
        where.post_form("/pypi/fixed/upload/", twine("fixed", "2.0", filename, data)),
        where.put(f"/fixed/2.0/{filename}", data),
        where.post_form("/simple/", twine("fixed", "2.0", filename, data)),
        where.post("/pypi/fixed/1.0/yank"),
        where.post("/pypi/fixed/1.0/unyank"),
        where.delete(f"/packages/fixed/1.0/{filename}"),
        where.delete("/pypi/fixed/1.0/"),
        where.post_json("/pypi/fixed/status", {"status": "archived"}, "PUT"),
    ):
        assert reply.status == 405, reply
        assert f"repository main/{name} is" in reply.reason
        assert f"repository main/{name} is" in reply.text


def test_distributions_are_published_through_a_virtual_repository(at, publish, files):
    everything, own = at("all"), at("own")
    name, data = publish("through", "1.0", where=everything)
    assert own.get(f"/packages/through/1.0/{name}").body == data
    assert everything.post("/pypi/through/1.0/yank?reason=bad").status == 200
    assert files("through", own)[name]["yanked"] == "bad"
    assert everything.delete(f"/packages/through/1.0/{name}").status == 200
    assert own.get(f"/packages/through/1.0/{name}").status == 404


def test_anonymous_changes_are_refused_as_in_the_target(at):
    filename, data = make_wheel("anonymous", "1.0")
    assert at("all").as_user().put(f"/anonymous/1.0/{filename}", data).status == 401
    assert at("mirror").as_user().put(f"/anonymous/1.0/{filename}", data).status == 405

"""What rules have found inside a file is shown with it: words, and how large it is unpacked."""

from __future__ import annotations

import pytest

from tests.support.images import Registry, make_image, make_layer_tar
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_manifest, make_publish, make_tarball

pytestmark = pytest.mark.server


async def test_a_file_is_shown_with_what_a_rule_has_read(stack: Stack) -> None:
    rule = {"name": "inside", "match": {"contents": ["native_build"]}, "action": "warn"}
    config = {"type": "Hosted", "policy": {"rules": [rule]}}
    await stack.add_repository("node", format="npm", config=config)
    scripts = {"install": "node-gyp rebuild"}
    manifest = make_manifest("addon", "1.0.0", scripts=scripts, license="MIT")
    tarball = make_tarball("addon", "1.0.0", manifest=manifest)
    body = make_publish("addon", "1.0.0", tarball=tarball, scripts=scripts)
    headers = {"Content-Type": "application/json"}
    assert (await stack.call("PUT", "/repositories/main/node/addon", raw=body, headers=headers)).status == 201
    place = "/package/main%2Fnode/addon/versions/1.0.0"
    [before] = (await stack.ok("GET", place))["files"]
    assert (before["contents"], before["unpacked_size"], before["unpacked_files"]) == (None, None, None)

    assert (await stack.call("GET", "/repositories/main/node/addon/-/addon-1.0.0.tgz")).status == 200
    [found] = (await stack.ok("GET", place))["files"]
    assert found["contents"] == ["install_script", "native_build"]
    assert found["licences"] == ["MIT"]
    assert found["unpacked_files"] >= 1
    assert found["unpacked_size"] > 20
    page = await stack.call("GET", "/ui/repositories/main/node/packages/addon")
    assert b"native build" in page.body
    assert b" in %d file" % found["unpacked_files"] in page.body


async def test_an_image_is_shown_with_what_a_rule_has_read(stack: Stack) -> None:
    rule = {"name": "inside", "match": {"contents": ["setuid"]}, "action": "warn"}
    config = {"type": "Hosted", "policy": {"rules": [rule]}}
    await stack.add_repository("images", format="docker", config=config)
    image = make_image("one", more_layers=[make_layer_tar([("usr/bin/su", 0o4755)])])
    await Registry(stack).push(image, "v1")
    place = "/package/main%2Fimages/app/versions/v1/image"
    [before] = (await stack.ok("GET", place))["platforms"]
    assert (before["contents"], before["programs"]) == (None, None)
    assert (await stack.call("GET", "/v2/main/images/app/manifests/v1")).status == 200
    [found] = (await stack.ok("GET", place))["platforms"]
    assert (found["contents"], found["programs"]) == (["root_user", "setuid"], ["usr/bin/su"])
    page = await stack.call("GET", "/ui/repositories/main/images/packages/app/versions/v1")
    assert b"Programs with setuid" in page.body
    assert b"root user" in page.body

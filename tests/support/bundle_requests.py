"""Sends bundles to a Maven repository, and asks what became of them."""

from tests.support.maven_bundles import (
    artifact,
    make_zip,
)

WAIT = "/deploy?wait=true"


ZIP = {"Content-Type": "application/zip"}


JSON = {**ZIP, "Accept": "application/json"}


def two(name, version="1.0"):
    """Two components of one build, by path."""
    return {**artifact("com.example", f"{name}-one", version), **artifact("com.example.sub", f"{name}-two", version)}


def deploy(where, members, path=WAIT, make=make_zip, **headers):
    return where.ask("POST", path, make(members), {**JSON, **{k.replace("_", "-"): v for k, v in headers.items()}})


def served(where, members):
    """The statuses of the files of a bundle."""
    return {where.get(f"/{path}").status for path in members}


def wait_for_end(where, uid, end="PUBLISHED"):
    """The status of a deployment once it has this state or has failed; each request gives the server time to go on."""
    while (status := where.get(f"/deploy/{uid}").json)["state"] not in (end, "FAILED"):
        pass
    return status

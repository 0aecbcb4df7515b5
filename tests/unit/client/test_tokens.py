"""What the server says of a new token is not trusted: it goes into files of tools."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from pkgrepo.client.http import Failed
from pkgrepo.client.tokens import create


class Server:
    """Makes the token that it was told."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def change(self, *_path: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"id": "1", "token": self._token, "expires_at": body["expires_at"]}


async def made(token: str) -> str:
    server: Any = Server(token)
    return str((await create(server, {"name": "x"}, timedelta(hours=1), is_fixed=True))["token"])


@pytest.mark.parametrize("token", ["pkgr_Zx09-_abc", "a.b~c+d/e=="])
async def test_a_token_is_taken(token: str) -> None:
    assert await made(token) == token


@pytest.mark.parametrize(
    "token",
    [
        "",
        "${AWS_SECRET_ACCESS_KEY}",  # npm and yarn would send the value of the variable
        "x'\n}\n'id'.execute()\n'",  # the init script of Gradle is a program
        "x\nscript-shell=/tmp/x",
        "x\r",
        "x y",
        "x@elsewhere.example/",
        "$(id)",
        "<x>",
        "é",
    ],
)
async def test_what_means_something_in_a_file_is_no_token(token: str) -> None:
    with pytest.raises(Failed, match="no token has"):
        await made(token)

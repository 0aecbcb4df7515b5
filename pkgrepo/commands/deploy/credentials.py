"""
The credentials of a deploy, which never come from the command line, because other users can see that.

==========================================  ========================================================
source                                      sent as
==========================================  ========================================================
``--token-file``                            a bearer token
``PKGREPO_DEPLOY_TOKEN``                    a bearer token
``PKGREPO_DEPLOY_USER``, ``.._PASSWORD``    Basic; the password may be a token, too
==========================================  ========================================================
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

from pkgrepo.commands.http.tokens import check_token, read_token
from pkgrepo.errors import Invalid


def read_authorization(environ: Mapping[str, str], token_file: Path | None) -> str:
    """
    The value of the Authorization header field.

    :raises Invalid: there are no credentials, or they cannot be sent; :raises OSError: the file cannot be read
    """
    token = environ.get("PKGREPO_DEPLOY_TOKEN", "")
    if token_file is not None:
        return f"Bearer {read_token(token_file)}"
    if token:
        return f"Bearer {check_token(token, 'PKGREPO_DEPLOY_TOKEN')}"
    user, password = environ.get("PKGREPO_DEPLOY_USER", ""), environ.get("PKGREPO_DEPLOY_PASSWORD", "")
    if not user or not password:
        raise Invalid(
            "there are no credentials: set PKGREPO_DEPLOY_TOKEN, or PKGREPO_DEPLOY_USER and PKGREPO_DEPLOY_PASSWORD, "
            "or name a file with --token-file"
        )
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode("ascii")

"""``npm login`` by password or browser, the caller's profile, and ``npm token``: credentials in, access tokens out."""

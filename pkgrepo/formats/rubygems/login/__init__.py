"""``gem signin``: a name and a password in, an access token for this repository out."""

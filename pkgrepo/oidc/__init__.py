"""
OpenID Connect: issuers whose identity tokens are accepted, and what the tokens are exchanged for.

A token passes through ``issuers`` (which finds the issuer's keys) and ``identity_tokens`` (which verifies it); what it
claims is then compared with the publishers of repositories.
"""

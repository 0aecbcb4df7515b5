"""
Access tokens, of the caller, of service accounts and of everyone, and the publishers that need no stored one.

The token service (``bearer``) issues bearer tokens to container clients.
"""

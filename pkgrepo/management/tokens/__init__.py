"""The caller's access tokens, and the token service that issues bearer tokens to container clients."""

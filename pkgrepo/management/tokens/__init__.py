"""One's own access tokens, and the token service of container clients."""

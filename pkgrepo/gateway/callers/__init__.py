"""Who sends a request (``access``): by the cookie of a browser, or by a token that a client puts in its own place."""

"""
The HTTP client of proxy repositories; it knows no package format and no catalog.

A request goes through `client` (permit of the host, health, redirects, retries), treq, `agent` (proxy or direct, no
decoding) and `endpoints` (addresses that may be connected to). Its answer comes back through `connection` (limits of
the head), `body` (back-pressure) and `response` (limits, timeouts, decompression).
"""

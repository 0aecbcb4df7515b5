"""
The HTTP client of proxy repositories; it knows no package format and no catalog.

A request goes through ``client`` (permit of the host, health, redirects, retries) and treq to L{pkgrepo.outbound}. Its
``response`` comes back with limits, timeouts and decompression.
"""

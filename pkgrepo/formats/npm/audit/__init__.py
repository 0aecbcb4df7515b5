"""``npm audit``: a client sends its installed versions; the response lists vulnerabilities from a local OSV export."""

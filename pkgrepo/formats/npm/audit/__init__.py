"""``npm audit``: a client sends its installed versions; the answer lists vulnerabilities from a local OSV export."""

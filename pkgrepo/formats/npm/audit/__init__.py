"""``npm audit``: installed versions in, known vulnerabilities from a local OSV export out."""

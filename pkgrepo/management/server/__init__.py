"""Health, version, and the first admin."""

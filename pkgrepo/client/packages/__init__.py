"""Commands on packages and versions."""

"""Sending of responses: what a handler returns becomes a head with a body or a transfer, written to the connection."""

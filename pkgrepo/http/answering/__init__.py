"""Sending of responses: a handler's answer becomes a head with a body or a transfer, written to the connection."""

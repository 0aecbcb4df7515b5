"""Webhooks of the server, of repositories and of projects, with their deliveries; and the feed of events."""

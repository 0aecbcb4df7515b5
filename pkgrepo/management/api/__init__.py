"""Shared by every resource: route table -> dispatch (identity, permission, body, audit) -> handler -> answer."""

"""The audit log, read by admins."""

"""Users and their permissions, for user managers; and the caller's own account."""

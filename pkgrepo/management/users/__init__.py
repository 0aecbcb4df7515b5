"""Users, their permissions, and one's own account."""

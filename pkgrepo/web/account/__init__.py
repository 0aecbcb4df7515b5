"""Pages about the caller's own account: log in and out, profile, tokens, second factor."""

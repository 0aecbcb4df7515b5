"""Who may do what: logging in, profiles, users, access tokens, and projects."""

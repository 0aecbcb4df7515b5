"""The caller's own account: profile, password, logins in browsers, and access tokens."""

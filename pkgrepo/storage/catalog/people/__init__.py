"""Users, groups, grants, tokens, logins and projects."""

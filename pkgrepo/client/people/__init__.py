"""Commands about who may do what: users, groups, tokens, projects, and the rights that files describe."""

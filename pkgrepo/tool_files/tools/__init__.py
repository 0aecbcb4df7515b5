"""What each tool needs to use a repository: functions of its address and of a token, which return ``ToolFile``."""

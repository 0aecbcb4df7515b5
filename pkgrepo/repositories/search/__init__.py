"""
Search over the packages of a repository, in memory.

``index`` holds the texts of one repository and answers queries; ``indexes`` builds one when it is first asked for, and
brings it up to date from the events of the catalog. What the texts are is for the format to say.
"""

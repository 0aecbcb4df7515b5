"""
What goes in and out of the API, one file for each family of resources.

What comes in refuses unknown fields; a field that is absent from a change leaves what it names as it is.
"""

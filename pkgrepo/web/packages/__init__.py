"""The pages of a package and of its versions, with the readme."""

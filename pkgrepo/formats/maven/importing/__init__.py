"""Takes in a folder with an existing Maven repository: directories -> checked files -> releases and plain files."""

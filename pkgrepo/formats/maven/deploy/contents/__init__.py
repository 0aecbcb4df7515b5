"""The files of a deployment: read from a bundle, surveyed before anything is stored, checked as versions, stored."""

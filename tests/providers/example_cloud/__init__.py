"""A provider as small as one can be: CONTRIBUTING.md walks through its three files.

Its account is a folder, with one JSON file a resource; EXAMPLE_CLOUD_FOLDER names it. It is not
shipped: tests register it with one row and use it through every command.
"""

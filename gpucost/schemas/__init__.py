"""The JSON Schema of every document that gpucost writes."""

"""The captures that `gpucost profile` itself writes."""

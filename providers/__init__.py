"""Act: everything that holds a credential or changes the world.

No provider is here yet. They arrive with `gpucost prices update` (fetching live prices) and
`gpucost provision` (launching and destroying); until then gpucost works offline only.
"""

LAUNCHABLE: frozenset[str] = frozenset()
"""Providers that this version can launch on; an option elsewhere is not `provisionable`."""

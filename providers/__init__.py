"""Act: everything that holds a credential or changes the world.

`providers.<name>.prices` reads the live prices of a provider for `gpucost prices update`; what
launches and destroys arrives with `gpucost provision`. The libraries of the providers are imported
when they are used.
"""

LAUNCHABLE: frozenset[str] = frozenset()
"""Providers that this version can launch on; an option elsewhere is not `provisionable`."""

"""Act: everything that holds a credential or changes the world.

`interface` says what a provider must do, `registry` which there are, `lifecycle` what is done with
them, `journal` what is remembered; `providers.<name>.prices` reads live prices. The libraries of
the providers are imported when they are used.
"""

"""A measurement from outside: the command, the sampler beside it, the profile at the end."""

"""A real boot: rendered user data on a virtual machine, with stand-ins for the tools of GPUs."""

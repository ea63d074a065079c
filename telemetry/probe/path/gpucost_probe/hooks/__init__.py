"""What is put around functions of PyTorch, Keras and JAX, so that they tell when things happen.

`gpucost_probe.import_hook` says which module here patches which module of the program, by
`patch(module, probe)`.
"""

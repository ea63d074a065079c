"""What is put around functions of PyTorch, Keras and JAX, so that they tell when things happen.

`gpucost_probe.WATCHED` says which function here patches which module of the program.
"""

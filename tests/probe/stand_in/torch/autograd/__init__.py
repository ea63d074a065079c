"""Stands in for torch.autograd."""


def backward(tensors):
    """Do nothing."""

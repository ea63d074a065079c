"""A stand-in for PyTorch: the few functions that the probe changes, as PyTorch shapes them."""

import os

from torch import cuda, nn, serialization
from torch.cuda import Tensor, device, dtype
from torch.serialization import save

__version__ = "2.13.0+stand-in"
__all__ = ["Tensor", "cuda", "device", "dtype", "nn", "save", "serialization"]

if os.environ.get("STAND_IN_BROKEN"):
    raise OSError("libcudart.so.13: cannot open shared object file")

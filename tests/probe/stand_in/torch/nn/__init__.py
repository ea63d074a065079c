"""Modules and parameters."""


class Parameter:
    """A parameter of float32."""

    dtype = "torch.float32"

    def __init__(self, count: int) -> None:
        self._count = count

    def numel(self) -> int:
        """Return the number of elements."""
        return self._count

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return 4


class Module:
    """A module that holds parameters and other modules."""

    def __init__(self, *children: "Module", count: int = 0) -> None:
        self._modules = dict(enumerate(children))
        self._own = [Parameter(count)] if count else []

    def modules(self) -> list["Module"]:
        """Return this module and all below it."""
        return [self, *(each for child in self._modules.values() for each in child.modules())]

    def parameters(self) -> list[Parameter]:
        """Return the parameters of this module and all below it."""
        return [each for module in self.modules() for each in module._own]


class DistributedDataParallel(Module):
    """A module that is named as PyTorch's wrapper is."""

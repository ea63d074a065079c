"""The loader, in the shape of PyTorch's."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any


class DataLoader:
    """Batches of a data set."""

    def __init__(
        self, dataset: Sequence[Any], batch_size: int | None = 1, num_workers: int = 0
    ) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.prefetch_factor = None
        self.pin_memory = False
        self.persistent_workers = False
        self.batch_sampler = None
        self.sampler = range(len(dataset))
        self._dataset_kind = 0

    def __len__(self) -> int:
        """Return the number of batches."""
        return -(-len(self.dataset) // (self.batch_size or 1))

    def __iter__(self) -> "_BaseDataLoaderIter":
        return _BaseDataLoaderIter(self)


class _BaseDataLoaderIter:
    def __init__(self, loader: DataLoader) -> None:
        self._dataset = loader.dataset
        self._size = loader.batch_size or 1
        self._places: Iterator[int] = iter(range(0, len(loader.dataset), self._size))
        self._num_yielded = 0

    def __iter__(self) -> "_BaseDataLoaderIter":
        return self

    def __next__(self) -> Any:
        place = next(self._places)
        end = min(place + self._size, len(self._dataset))
        data = [self._dataset[index] for index in range(place, end)]
        self._num_yielded += 1
        if data and data[0] == "warn":
            warnings.warn("an odd batch", stacklevel=2)
        return data


def get_worker_info() -> None:
    """Return that this is not a worker."""

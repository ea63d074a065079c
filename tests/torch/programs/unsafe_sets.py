"""Data sets and samplers whose results workers would change, each by its name."""

import os
import random
import time

import numpy as np
import torch
from slow_items import COUNT, ITEM_S, SIZE, Plain, collating, of_index, plain, shuffled
from torch.utils.data import DataLoader, IterableDataset, Sampler, get_worker_info

GLOBAL = np.random.default_rng(5)


class TorchRandom(Plain):
    def item(self, index):
        return of_index(index) + 0.01 * torch.rand(SIZE)


class NumpyRandom(Plain):
    def item(self, index):
        return of_index(index) + 0.01 * float(np.random.rand())


class PythonRandom(Plain):
    def item(self, index):
        return of_index(index) + 0.01 * random.random()


class OwnGenerator(Plain):
    def __init__(self):
        self.rng = np.random.default_rng(1)

    def item(self, index):
        return of_index(index) + 0.01 * float(self.rng.random())


class OwnTorchGenerator(Plain):
    def __init__(self):
        self.rng = torch.Generator().manual_seed(1)

    def item(self, index):
        return of_index(index) + 0.01 * torch.rand(SIZE, generator=self.rng)


class GlobalGenerator(Plain):
    def item(self, index):
        return of_index(index) + 0.01 * float(GLOBAL.random())


class RandomInCollate(Plain):
    def collate(self, items):
        """Return a batch with noise."""
        return torch.stack(items) + 0.01 * torch.rand(1)


class RarelyRandom(Plain):
    def item(self, index):
        return of_index(index) + (0.01 * torch.rand(SIZE) if index == COUNT - 20 else 0)


class Iterated(IterableDataset):
    def __iter__(self):
        for index in range(COUNT):
            time.sleep(ITEM_S)
            yield of_index(index)


class OpenFile(Plain):
    def __init__(self):
        with open("records.bin", "wb") as stream:
            stream.write(np.stack([of_index(i).numpy() for i in range(COUNT)]).tobytes())
        self.stream = open("records.bin", "rb")  # noqa: SIM115

    def item(self, index):
        self.stream.seek(index * SIZE * 4)
        return torch.from_numpy(np.frombuffer(self.stream.read(SIZE * 4), np.float32).copy())


class LazyFile(OpenFile):
    def __init__(self):
        super().__init__()
        self.stream.close()
        self.stream = None

    def item(self, index):
        if self.stream is None:
            self.stream = open("records.bin", "rb")  # noqa: SIM115
        return super().item(index)


class Counting(Plain):
    def __init__(self):
        self.read = 0

    def item(self, index):
        self.read += 1
        return of_index(index) * (1 + self.read % 2)


class Stream(Plain):
    def __init__(self):
        self.items = iter(range(10**6))

    def item(self, index):
        return of_index(next(self.items))


class BigSums(Plain):
    """The sum over two threads differs from that over one, as in a worker, by its last bits."""

    def __init__(self):
        self.values = torch.linspace(0.1, 0.9, 200_000).sin()

    def item(self, index):
        return of_index(index) + self.values.sum() - 93348.5


class Nested(Plain):
    def __init__(self):
        self.parts = DataLoader(Plain(), batch_size=1, num_workers=0)

    def item(self, index):
        return next(iter(self.parts))[0] * (index % 3)


class Mutated(Plain):
    factor = 1.0

    def __init__(self):
        self.factor = 1.0

    def item(self, index):
        return of_index(index) * self.factor


class DiesInWorkers(Plain):
    def item(self, index):
        if get_worker_info() is not None and index == COUNT - 10:
            os._exit(3)
        return of_index(index)


class OnlyInWorkers(Plain):
    def item(self, index):
        return of_index(index) + (get_worker_info() is not None)


class DrawingSampler(Sampler):
    """Draws for each item."""

    def __init__(self):
        super().__init__()

    def __len__(self):
        return COUNT

    def __iter__(self):
        return (random.randrange(COUNT) for _ in range(COUNT))


class LateSampler(DrawingSampler):
    """Shuffles the second half when it comes to it."""

    def __iter__(self):
        yield from range(COUNT // 2)
        rest = list(range(COUNT // 2, COUNT))
        random.shuffle(rest)
        yield from rest


UNSAFE = {
    "torch-random": lambda: shuffled(TorchRandom()),
    "numpy-random": lambda: shuffled(NumpyRandom()),
    "python-random": lambda: shuffled(PythonRandom()),
    "own-generator": lambda: shuffled(OwnGenerator()),
    "own-torch-generator": lambda: shuffled(OwnTorchGenerator()),
    "global-generator": lambda: shuffled(GlobalGenerator()),
    "random-collate": lambda: collating(RandomInCollate()),
    "rarely-random": lambda: plain(RarelyRandom()),
    "iterable": lambda: plain(Iterated()),
    "open-file": lambda: shuffled(OpenFile()),
    "lazy-file": lambda: shuffled(LazyFile()),
    "counting": lambda: shuffled(Counting()),
    "stream": lambda: shuffled(Stream()),
    "big-sums": lambda: shuffled(BigSums()),
    "nested": lambda: plain(Nested()),
    "mutated": lambda: shuffled(Mutated()),
    "dies-in-workers": lambda: plain(DiesInWorkers()),
    "only-in-workers": lambda: shuffled(OnlyInWorkers()),
    "drawing-sampler": lambda: plain(Plain(), sampler=DrawingSampler()),
    "late-sampler": lambda: plain(Plain(), sampler=LateSampler()),
    "generator": lambda: shuffled(Plain(), generator=torch.Generator().manual_seed(7)),
    "given-zero": lambda: shuffled(Plain(), num_workers=0),
    "given-two": lambda: shuffled(Plain(), num_workers=2, multiprocessing_context="fork"),
    "shared-memory": lambda: shuffled(Plain()),
    "spawn": lambda: shuffled(Plain()),
    "spawn-lambda": lambda: shuffled(torch.utils.data.Subset(Plain(), range(COUNT))),
}

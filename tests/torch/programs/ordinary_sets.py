"""Data sets and samplers as people write them, which workers read as well, each by its name."""

import collections
import functools
import io
import logging
import threading
import time
import zipfile
import zlib

import numpy as np
import torch
from slow_items import COUNT, ITEM_S, SIZE, Plain, collating, of_index, plain, shuffled
from torch.utils import data
from torch.utils.data import DataLoader, Sampler


class Files(Plain):
    def __init__(self):
        for i in range(COUNT):
            np.save("item-%d.npy" % i, of_index(i).numpy())

    def item(self, index):
        return torch.from_numpy(np.load("item-%d.npy" % index))


class Mapped(Plain):
    def __init__(self):
        np.stack([of_index(i).numpy() for i in range(COUNT)]).tofile("mapped.bin")
        self.rows = np.memmap("mapped.bin", np.float32, "r", shape=(COUNT, SIZE))

    def item(self, index):
        return torch.from_numpy(np.array(self.rows[index]))


class Archive(Plain):
    def __init__(self):
        with zipfile.ZipFile("items.zip", "w") as archive:
            for i in range(COUNT):
                archive.writestr(str(i), zlib.compress(of_index(i).numpy().tobytes()))

    def item(self, index):
        with zipfile.ZipFile("items.zip") as archive:
            raw = zlib.decompress(archive.read(str(index)))
        return torch.from_numpy(np.frombuffer(raw, np.float32).copy())


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


class Flip(torch.nn.Module):
    def forward(self, x):
        return x.flip(0)


class Transformed(Plain):
    def __init__(self):
        self.transform = [Scale(0.5), Flip(), lambda x: x + 1, functools.partial(torch.mul, 0.3)]

    def item(self, index):
        x = of_index(index)
        for each in self.transform:
            x = each(x)
        return x


class Rows(Plain):
    def __init__(self):
        text = "\n".join("%d,%d" % (i, i * i % 7) for i in range(COUNT))
        self.rows = [tuple(map(int, line.split(","))) for line in io.StringIO(text)]

    def item(self, index):
        a, b = self.rows[index]
        return of_index(a) + b


class LazyIndex(Plain):
    def __init__(self):
        self.index = None

    def item(self, index):
        if self.index is None:
            self.index = {i: i % 11 for i in range(COUNT)}
        return of_index(self.index[index])


class SplitBySeed(Plain):
    def __init__(self):
        self.rng = np.random.RandomState(0)
        self.order = self.rng.permutation(COUNT)

    def item(self, index):
        return of_index(int(self.order[index]))


Sample = collections.namedtuple("Sample", "x name")


class Named(Plain):
    def item(self, index):
        return Sample(of_index(index), "item %d" % index)


class Texts(Plain):
    def __init__(self):
        self.texts = ["word " * (1 + i % 5) for i in range(COUNT)]
        self.vocabulary = {"word": 1}
        self.lock = threading.Lock()
        self.log = logging.getLogger("texts")

    def item(self, index):
        with self.lock:
            tokens = [self.vocabulary[word] for word in self.texts[index].split()]
        return {"x": torch.tensor(tokens, dtype=torch.float32), "text": self.texts[index]}

    def collate(self, items):
        """Return a batch padded to the same length."""
        x = torch.zeros(len(items), SIZE)
        for row, item in zip(x, items):
            row[: len(item["x"])] = item["x"]
        return {"x": x, "text": [item["text"] for item in items]}


class ByEpoch(Plain):
    def __init__(self):
        self.epoch = 0

    def set_epoch(self, epoch):
        """Take the epoch."""
        self.epoch = epoch

    def item(self, index):
        return of_index(index + 3 * self.epoch)


@functools.cache
def _decoded(index):
    return of_index(index)


class Remembered(Plain):
    def item(self, index):
        return _decoded(index).clone()


class Fetched(Plain):
    def __getitems__(self, indices):
        time.sleep(ITEM_S * len(indices))
        return [of_index(index) for index in indices]


class ByLength(Sampler):
    """Batches of items of like length, in a fixed order."""

    def __init__(self):
        super().__init__()

    def __len__(self):
        return COUNT // 4

    def __iter__(self):
        order = sorted(range(COUNT), key=lambda i: i % 5)
        return (order[i : i + 4] for i in range(0, COUNT, 4))


ORDINARY = {
    "plain": lambda: shuffled(Plain()),
    "files": lambda: shuffled(Files()),
    "mapped": lambda: shuffled(Mapped()),
    "archive": lambda: shuffled(Archive()),
    "transformed": lambda: shuffled(Transformed()),
    "rows": lambda: plain(Rows()),
    "lazy-index": lambda: shuffled(LazyIndex()),
    "split-by-seed": lambda: shuffled(SplitBySeed()),
    "named": lambda: shuffled(Named()),
    "texts": lambda: collating(Texts()),
    "by-epoch": lambda: shuffled(ByEpoch()),
    "remembered": lambda: shuffled(Remembered()),
    "fetched": lambda: shuffled(Fetched()),
    "subset": lambda: shuffled(data.Subset(Plain(), range(COUNT))),
    "split": lambda: shuffled(data.random_split(Rows(), [COUNT, 0])[0]),
    "concat": lambda: shuffled(data.ConcatDataset([Plain(), Rows()])),
    "weighted": lambda: plain(Plain(), sampler=data.WeightedRandomSampler([1.0] * COUNT, COUNT)),
    "replacement": lambda: plain(Plain(), sampler=data.RandomSampler(range(COUNT), True)),
    "distributed": lambda: plain(Plain(), sampler=data.DistributedSampler(range(COUNT), 1, 0)),
    "by-length": lambda: DataLoader(Plain(), batch_sampler=ByLength()),
    "single": lambda: DataLoader(Plain(), batch_size=None),
}

"""Items that take a time each, and ways to load them."""

import time

import torch
from torch.utils.data import DataLoader, Dataset

ITEM_S = 0.008
COUNT = 72
SIZE = 16


def of_index(index):
    """Return what every item is made of."""
    return torch.arange(SIZE, dtype=torch.float32).mul(0.01).add(0.1 * (index % 13))


class Plain(Dataset):
    """Items that take a time each and depend on their index alone."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        time.sleep(ITEM_S)
        return self.item(index)

    def item(self, index):
        """Return one item."""
        return of_index(index)


def shuffled(dataset, **more):
    """Return a loader that shuffles."""
    return DataLoader(dataset, batch_size=4, shuffle=True, **more)


def plain(dataset, **more):
    """Return a loader in the order of the data set."""
    return DataLoader(dataset, batch_size=4, **more)


def collating(dataset):
    """Return a loader that uses the data set's own collate function."""
    return DataLoader(dataset, batch_size=4, collate_fn=dataset.collate)

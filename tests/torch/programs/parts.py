"""What the programs share: a data set that takes its time, a small model."""

import time

import torch
from torch.utils.data import Dataset


class Slow(Dataset):
    """Items that take a time each.

    Args:
        count: number of items.
        item_s: seconds an item.
    """

    def __init__(self, count, item_s=0.0):
        self.count, self.item_s = count, item_s

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.item_s:
            time.sleep(self.item_s)
        return torch.full((8,), float(index)), torch.zeros(2)


def loss_of(model, batch):
    """Return a loss."""
    x, y = batch
    return (model(x) - y).square().mean()

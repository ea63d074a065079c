"""Trains on the data sets that the arguments name; prints the losses of each, bit by bit."""

import multiprocessing
import os
import random
import sys

import numpy as np
import torch
from ordinary_sets import ORDINARY
from slow_items import SIZE
from unsafe_sets import UNSAFE, Mutated


def tensor_of(batch):
    """Return the numbers of a batch."""
    batch = batch["x"] if isinstance(batch, dict) else batch
    batch = batch.x if isinstance(batch, tuple) else batch
    return batch.reshape(-1, SIZE)


def train(name, loader):
    """Train for two epochs, with random numbers of the program's own in each step."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(SIZE, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    losses = []
    for epoch in range(2):
        if hasattr(loader.dataset, "set_epoch"):
            loader.dataset.set_epoch(epoch)
        for number, batch in enumerate(loader):
            if isinstance(loader.dataset, Mutated) and number == 15:
                loader.dataset.factor += 0.5
            loss = (model(tensor_of(batch)) - random.random() - np.random.rand()).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item().hex())
            if epoch == 1 and number == 18:
                break
    print(name, *losses, torch.rand(1).item(), random.random(), np.random.rand())


def main(names):
    """Train on each."""
    torch.set_num_threads(2)
    statvfs = os.statvfs
    for name in names:
        if name == "shared-memory":
            small = list(statvfs("/"))
            small[4] = 0
            os.statvfs = lambda _, small=small: os.statvfs_result(small)
        if name == "spawn":
            multiprocessing.set_start_method("spawn")
        loader = {**UNSAFE, **ORDINARY}[name]()
        kind = type(loader.dataset)
        loader.dataset.__class__ = type(name, (kind,), {})  # by which the events name it
        train(name, loader)
        os.statvfs = statvfs


if __name__ == "__main__":
    main(sys.argv[1:])

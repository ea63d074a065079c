"""Trains on slow items in the way that the argument names; each process prints its losses."""

import os
import sys
from pathlib import Path

import torch
from slow_items import COUNT, SIZE, Plain
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def train(name, sampler=None, wrap=None, loader=None):
    """Train for an epoch and print the losses."""
    torch.manual_seed(0)
    model = torch.nn.Linear(SIZE, 1)
    model = wrap(model) if wrap else model
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    losses = []
    batches = loader or DataLoader(Plain(), batch_size=2, sampler=sampler, shuffle=sampler is None)
    for x in batches:
        loss = (model(x) - torch.rand(1)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item().hex())
    sys.stdout.write(" ".join([name, *losses]) + "\n")  # one write: lines do not mix
    sys.stdout.flush()


def as_rank():
    """Train as one of two."""
    data = range(2 * COUNT)
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(torch.utils.data.ConcatDataset([Plain(), Plain()]), 2, sampler=sampler)
    train(f"rank {distributed.get_rank()}", wrap=DistributedDataParallel, loader=loader)
    distributed.destroy_process_group()


def spawned(rank, file):
    """Join the other by a file."""
    distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    as_rank()


def main(way):
    """Train in one way."""
    if way == "rank":
        distributed.init_process_group("gloo")
        as_rank()
    elif way == "spawn":
        multiprocessing.spawn(spawned, args=(str(Path("store").resolve()),), nprocs=2)
        Path("store").unlink(missing_ok=True)
    elif way == "fork":
        loader = DataLoader(Plain(), batch_size=2)
        for _ in loader:  # a loader with workers, in the parent
            pass
        rest = iter(loader)
        next(rest)
        child = os.fork()
        train("child" if child == 0 else "parent", loader=[*rest])
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    else:
        train(way)


if __name__ == "__main__":
    main(sys.argv[1])

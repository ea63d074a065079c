"""Two ranks that train together, one of which has work of its own in every step."""

import sys
import time

import torch
import torch.distributed
from torch.multiprocessing import spawn
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)


def straggle():
    """Do what only this rank does."""
    time.sleep(0.1)


def train(rank, world, store):
    """Train as one rank."""
    torch.distributed.init_process_group(
        "gloo", init_method="file://" + store, rank=rank, world_size=world
    )
    model = DistributedDataParallel(torch.nn.Linear(256, 256))
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    for _ in range(100):
        if rank == 1:
            straggle()
        model(torch.ones(32, 256)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    spawn(train, args=(2, sys.argv[1]), nprocs=2)

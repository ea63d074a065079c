"""DDP on two processes, started by torchrun or by mp.spawn; each prints its number of steps."""

import sys

import torch
from parts import Slow, loss_of
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def train():
    """Train two epochs."""
    model = DistributedDataParallel(torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    data = Slow(60)
    steps = 0
    for _ in range(2):
        for batch in DataLoader(data, batch_size=5, sampler=DistributedSampler(data)):
            loss_of(model, batch).backward()
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
    sys.stdout.write(f"{steps}\n")  # one write: lines of two processes do not mix
    sys.stdout.flush()
    distributed.destroy_process_group()


def spawned(rank, file):
    """Join the others by a file, without any environment variable."""
    distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    train()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        multiprocessing.spawn(spawned, args=(sys.argv[1],), nprocs=2)
    else:
        distributed.init_process_group("gloo")
        train()

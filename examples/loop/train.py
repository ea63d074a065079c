"""A training loop that waits for its data: each item takes 5 ms to come, as from a slow disk.

`make loop` makes it faster without editing it. With --wait-ms 0 --width 1024 it computes all the
time, so nothing is gained.
"""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset

BATCH = 16
PRINT_EVERY = 40


class Items(Dataset):
    """Random vectors in memory that take a while to come."""

    def __init__(self, size, wait_s):
        """Hold so many, each after so many seconds."""
        self.vectors = torch.randn(size, 256)
        self.wait_s = wait_s

    def __len__(self):
        """Count them."""
        return len(self.vectors)

    def __getitem__(self, index):
        """Wait, as for a disk or a bucket, and return a vector and its class."""
        if self.wait_s:
            time.sleep(self.wait_s)
        vector = self.vectors[index]
        return vector, int(vector[0] > 0)


def main():
    """Train one epoch and print losses with every digit."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=400)
    options.add_argument("--wait-ms", type=float, default=5.0)
    options.add_argument("--width", type=int, default=256)
    asked = options.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    hidden = (torch.nn.Linear(asked.width, asked.width), torch.nn.ReLU())
    model = torch.nn.Sequential(
        torch.nn.Linear(256, asked.width),
        torch.nn.ReLU(),
        *hidden,
        torch.nn.Linear(asked.width, 2),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    items = Items(asked.steps * BATCH, asked.wait_ms / 1000)
    for step, (vectors, classes) in enumerate(DataLoader(items, batch_size=BATCH, shuffle=True)):
        loss = torch.nn.functional.cross_entropy(model(vectors), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % PRINT_EVERY == 0:
            print(f"step {step}: loss {loss.item()!r}", flush=True)


if __name__ == "__main__":
    main()

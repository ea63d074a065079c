"""Python of a known length before a call of PyTorch; says which share its own clock gives it.

bias.py MILLISECONDS SECONDS
"""

import sys
import time

import torch

torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.randn(16, 16))
batch = torch.randn(4, 16)
optimizer = torch.optim.SGD([weight], lr=1e-3)


def metric(rounds: int) -> int:
    """Count in Python, without anything that lets go of the interpreter's lock."""
    total = 0
    for i in range(rounds):
        total += i * i % 7
    return total


def rounds_of(length_s: float) -> int:
    """Return how many rounds take so long."""
    begin_s = time.thread_time()
    metric(400_000)
    return max(1, int(400_000 * length_s / (time.thread_time() - begin_s)))


def main() -> None:
    """Train until the time is over."""
    rounds, seconds = rounds_of(float(sys.argv[1]) / 1e3), float(sys.argv[2])
    own_s = 0.0
    begin_s = time.perf_counter()
    optimizer.step()
    while time.perf_counter() - begin_s < seconds:
        start_s = time.perf_counter()
        metric(rounds)
        own_s += time.perf_counter() - start_s
        (batch @ weight).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print(own_s / (time.perf_counter() - begin_s))


main()

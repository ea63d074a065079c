"""Loops with a known trouble, each in the way that such programs are written.

Argument: the name of the loop. What a GPU would compute is computed here, on one thread of the CPU.
"""

import sys
import time

import torch

torch.set_num_threads(1)
WIDTH = 384


def made():
    """Return a model and its optimizer."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(6)])
    return model, torch.optim.SGD(model.parameters(), 0.0001)


def trained(model, optimizer, batch):
    """Make one step, in mixed precision."""
    with torch.autocast("cpu", torch.bfloat16):
        output = model(batch)
    output.float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def rows(count=64):
    """Return a batch that is there already."""
    return torch.ones(count, WIDTH)


def wait_for_work(pause_s):
    """Wait until somebody has work."""
    time.sleep(pause_s)


def bursts():
    """Bursts of steps, and pauses of 8 and 15 seconds between them."""
    model, optimizer = made()
    for pause_s in (8, 15, 0):
        for _ in range(100):
            trained(model, optimizer, rows())
        wait_for_work(pause_s)


def one_step():
    """One step, and nothing more."""
    model, optimizer = made()
    batch = rows(4096)
    for _ in range(20):
        with torch.autocast("cpu", torch.bfloat16):
            output = model(batch)
        output.float().square().mean().backward()
    optimizer.step()


def out_of_memory():
    """A job that runs out of the GPU's memory."""
    model, optimizer = made()
    for _ in range(200):
        trained(model, optimizer, rows())
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def mixed_in_jax():
    """JAX: a compiled step, and a host that shuffles in between."""
    import jax  # noqa: PLC0415 - not beside PyTorch
    import jax.numpy as jnp  # noqa: PLC0415

    step = jax.jit(lambda weights, x: weights - 0.001 * x.T @ (x @ weights))
    weights, x = jnp.ones((256, 256)), jnp.ones((64, 256))
    for _ in range(150):
        reshuffle()
        weights = step(weights, x)
    weights.block_until_ready()


def reshuffle():
    """Order the samples anew, in Python."""
    order = 7
    for _ in range(500_000):
        order = (order * 48271) % 2147483647
    return order


LOOPS = {
    "bursts": bursts,
    "one-step": one_step,
    "out-of-memory": out_of_memory,
    "jax": mixed_in_jax,
}

if __name__ == "__main__":
    LOOPS[sys.argv[1]]()

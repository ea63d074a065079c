"""Loops with a known trouble, each in the way that such programs are written.

Argument: the name of the loop. What a GPU would compute is computed here, on one thread of the CPU.
"""

import queue
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
WIDTH = 384


class Decoded(Dataset):
    """Items that take their time to decode."""

    def __init__(self, count, item_s):
        self.count, self.item_s = count, item_s

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(self.item_s)
        return torch.full((WIDTH,), index % 7 / 7.0)


class HeldOut(Decoded):
    """The same, for evaluation."""

    def __getitem__(self, index):
        time.sleep(self.item_s)
        return torch.full((WIDTH,), 0.5)


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


def starved():
    """A loader without workers."""
    model, optimizer = made()
    for batch in DataLoader(Decoded(1600, 0.004), batch_size=8):
        trained(model, optimizer, batch)


def workers():
    """Two workers that are too slow."""
    model, optimizer = made()
    for batch in DataLoader(Decoded(2400, 0.008), batch_size=8, num_workers=2):
        trained(model, optimizer, batch)


def healthy():
    """Nothing but work."""
    model, optimizer = made()
    for _ in range(500):
        trained(model, optimizer, rows())


def saving():
    """A checkpoint every few steps."""
    model, optimizer = made()
    state = [torch.zeros(6_000_000) for _ in range(4)]
    for step in range(240):
        trained(model, optimizer, rows())
        if step % 5 == 4:
            torch.save(state, "model.pt")


def launches(x):
    """Work through tiny operations, as a loop that launches a kernel for each."""
    for _ in range(3000):
        x = x * 1.0001
    return x


def launching():
    """A step of thousands of tiny operations."""
    model, optimizer = made()
    for _ in range(300):
        trained(model, optimizer, launches(torch.ones(8, WIDTH)))


def evaluating():
    """Half of the time goes into evaluation, which waits for its loader."""
    model, optimizer = made()
    held_out = DataLoader(HeldOut(160, 0.008), batch_size=8)
    for _ in range(6):
        for _ in range(60):
            trained(model, optimizer, rows())
        with torch.no_grad():
            for batch in held_out:
                model(batch)


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


def play(moves):
    """Simulate a game, in Python, on one core."""
    score = 0
    for move in range(moves):
        score = (score * 31 + move) % 1000003
    return score


def simulator():
    """Reinforcement learning: each step waits for a simulator."""
    model, optimizer = made()
    for _ in range(200):
        play(600_000)
        trained(model, optimizer, rows(16))


def get_batch():
    """Read a batch, without a DataLoader."""
    time.sleep(0.05)
    return rows(16)


def getting():
    """A slow function of the program's own gives the batches."""
    model, optimizer = made()
    for _ in range(200):
        trained(model, optimizer, get_batch())


def read_ahead(batches, count):
    """Read batches into a queue."""
    for _ in range(count):
        time.sleep(0.06)
        batches.put(rows(16))
    batches.put(None)


def threaded():
    """A loader in a thread."""
    model, optimizer = made()
    batches = queue.Queue(4)
    threading.Thread(target=read_ahead, args=(batches, 180), daemon=True).start()
    while (batch := batches.get()) is not None:
        trained(model, optimizer, batch)


def inferring():
    """Inference that waits for its loader."""
    model, _ = made()
    with torch.inference_mode():
        for batch in DataLoader(Decoded(1600, 0.006), batch_size=8):
            model(batch)


def sync_metrics():
    """Send metrics somewhere."""
    time.sleep(2.0)


def stalling():
    """A stall of 2 s every 3 s."""
    model, optimizer = made()
    begin_s = time.perf_counter()
    for _ in range(5):
        while time.perf_counter() - begin_s < 1.0:
            trained(model, optimizer, rows())
        sync_metrics()
        begin_s = time.perf_counter()


def read_rows():
    """Read a batch."""
    time.sleep(0.05)
    return rows(16)


def by_hand():
    """Gradient descent without an optimizer."""
    model, _ = made()
    for _ in range(200):
        model(read_rows()).square().mean().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(0.0001 * parameter.grad)
                parameter.grad = None


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
    "starved": starved,
    "workers": workers,
    "healthy": healthy,
    "saving": saving,
    "launching": launching,
    "evaluating": evaluating,
    "bursts": bursts,
    "simulator": simulator,
    "getting": getting,
    "threaded": threaded,
    "inferring": inferring,
    "stalling": stalling,
    "by-hand": by_hand,
    "one-step": one_step,
    "out-of-memory": out_of_memory,
    "jax": mixed_in_jax,
}

if __name__ == "__main__":
    LOOPS[sys.argv[1]]()

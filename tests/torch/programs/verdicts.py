"""One loop, four troubles: starved, healthy, saving, launching. Prints what it timed, as JSON.

Arguments: the trouble, the number of steps.
"""

import json
import sys
import time
from time import perf_counter

import torch
from parts import Slow
from torch.utils.data import DataLoader

torch.set_num_threads(1)


def launches(x):
    """Work through a thousand tiny operations, as a loop that launches a kernel for each."""
    for _ in range(1000):
        x = x * 1.0001
    return x


def main(trouble, steps):
    """Train, and time the waits and saves."""
    model = torch.nn.Linear(8, 256)
    optimizer = torch.optim.SGD(model.parameters(), 0.0001)
    item_s = 0.004 if trouble == "starved" else 0.0
    batches = iter(DataLoader(Slow(8 * steps, item_s), batch_size=8))
    state = [torch.zeros(4_000_000) for _ in range(4)]
    waited_s = saved_s = 0.0
    begin_s = perf_counter()
    for step in range(steps):
        before_s = perf_counter()
        batch, _ = next(batches)
        waited_s += perf_counter() - before_s
        if trouble != "launching":
            # The sleep stands for the kernels of a GPU that the step waits for.
            time.sleep(0.015)
        with torch.autocast("cpu", torch.bfloat16):
            output = model(batch)
            if trouble == "launching":
                output = launches(output)
        output.float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if trouble == "saving" and step % 5 == 4:
            before_s = perf_counter()
            torch.save(state, "model.pt")
            saved_s += perf_counter() - before_s
    all_s = perf_counter() - begin_s
    print(json.dumps({"wait_s": waited_s, "save_s": saved_s, "all_s": all_s}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

"""A loop that times its own waits, evaluations and saves; prints them as JSON.

Arguments: seconds an item, loader workers, seconds a step, whether workers persist.
"""

import json
import sys
import time
from time import perf_counter

import torch
from parts import Slow, loss_of
from torch.utils.data import DataLoader


def timed(truth, name, function, *arguments):
    """Call a function, and add its time to what is known."""
    begin_s = perf_counter()
    value = function(*arguments)
    truth[name] += perf_counter() - begin_s
    return value


def main(item_s, workers, step_s, persistent):
    """Train three epochs."""
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    loader = DataLoader(
        Slow(200, item_s), 10, num_workers=workers, persistent_workers=bool(persistent)
    )
    held_out = DataLoader(Slow(20, 0.002), 5)
    truth = dict.fromkeys(("wait_s", "evaluation_s", "save_s", "optimizer_s"), 0.0)
    truth["items"] = 0
    begin_s = perf_counter()
    for epoch in range(3):
        batches = timed(truth, "wait_s", iter, loader)
        while (batch := timed(truth, "wait_s", next, batches, None)) is not None:
            time.sleep(step_s)
            loss_of(model, batch).backward()
            timed(truth, "optimizer_s", optimizer.step)
            optimizer.zero_grad()
            truth["items"] += len(batch[0])
            if epoch == 2 and truth["items"] == 600:
                break
        else:
            timed(truth, "evaluation_s", lambda: [loss_of(model, each) for each in held_out])
            timed(truth, "save_s", torch.save, model.state_dict(), "model.pt")
    truth["all_s"] = perf_counter() - begin_s
    print(json.dumps(truth))


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))

"""A plain loop in the way that the first argument names; prints the number of optimizer steps."""

import sys

import torch
from parts import Slow, loss_of
from torch.utils.data import DataLoader

model = torch.nn.Linear(8, 2)


class Twice(torch.optim.Adam):
    """An optimizer whose step is that of its base."""

    def step(self, closure=None):
        """Step once."""
        return super().step(closure)


def loop(optimizer, every=1, epochs=2):
    """Train, with a step every so many batches; return the number of steps."""
    steps = 0
    for _ in range(epochs):
        for number, batch in enumerate(DataLoader(Slow(50), batch_size=5), 1):
            loss_of(model, batch).backward()
            if number % every == 0:
                optimizer.step()
                optimizer.zero_grad()
                steps += 1
    return steps


def scaled():
    """Train with a scaler that skips every third step, as after an overflow."""
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    scaler, steps = torch.amp.GradScaler("cpu", init_scale=2.0), 0
    for number, batch in enumerate(DataLoader(Slow(60), batch_size=5)):
        loss = scaler.scale(loss_of(model, batch))
        (loss * float("inf") if number % 3 == 2 else loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        steps += number % 3 != 2
    return steps


def alternating():
    """Train two models in turns, as a GAN does."""
    other = torch.nn.Linear(8, 2)
    optimizers = [torch.optim.SGD(each.parameters(), 0.01) for each in (model, other)]
    steps = 0
    for batch in DataLoader(Slow(50), batch_size=5):
        for each, optimizer in zip((model, other), optimizers, strict=True):
            optimizer.zero_grad()
            loss_of(each, batch).backward()
            optimizer.step()
        steps += 1
    return steps


def closures():
    """Train with an optimizer that runs the model itself."""
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    batches = list(DataLoader(Slow(50), batch_size=5))
    for batch in batches:

        def closure(batch=batch):
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            return loss

        optimizer.step(closure)
    return len(batches)


def compiled():
    """Train a compiled model under autocast; its graph must be whole."""
    fast = torch.compile(model, backend="eager", fullgraph=True)
    optimizer, steps = torch.optim.SGD(model.parameters(), 0.01), 0
    for batch in DataLoader(Slow(50), batch_size=5):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(fast, batch)
        loss.backward()
        optimizer.step()
        steps += 1
    return steps


WAYS = {
    "plain": lambda: loop(torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)),
    "foreach": lambda: loop(torch.optim.AdamW(model.parameters(), foreach=True)),
    "fused": lambda: loop(torch.optim.Adam(model.parameters(), fused=True)),
    "accumulated": lambda: loop(torch.optim.SGD(model.parameters(), 0.01), every=4),
    "super": lambda: loop(Twice(model.parameters())),
    "scaled": scaled,
    "alternating": alternating,
    "closures": closures,
    "compiled": compiled,
}

if __name__ == "__main__":
    print(WAYS[sys.argv[1]]())

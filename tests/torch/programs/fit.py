"""Trains a small model in the way that the argument names; says how each step was done."""

import sys

import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.head = torch.nn.Linear(8, 2)
        self.seen = []

    def forward(self, x):
        y = self.conv(x)
        self.seen.append((str(y.dtype), y.is_contiguous(memory_format=torch.channels_last)))
        return self.head(torch.relu(y).mean((2, 3)))


class Silent(Net):
    def forward(self, x):
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


def fit(model, optimizer, call=None, steps=6):
    """Train for some steps; print what each gave."""
    call = call or model
    for step in range(steps):
        x = torch.linspace(-1, 1, 2 * 3 * 16 * 16).reshape(2, 3, 16, 16) * (step + 1)
        out = call(x)
        loss = (out - torch.tensor([1.0, -1.0])).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("loss", loss.item(), out.dtype)
    for each in getattr(model, "seen", []):
        print("seen", *each)
    print("fused", optimizer.param_groups[0].get("fused"))
    torch.save([model.state_dict(), model], "model.pt")


def adam(model, **more):
    """Return an optimizer."""
    return torch.optim.Adam(model.parameters(), 0.01, **more)


def whole():
    model = Net()
    fit(model, adam(model))


def long():
    model = Net()
    fit(model, adam(model), steps=45)


def silent():
    model = Silent()
    fit(model, adam(model))


def nothing(*_):
    """Be a hook."""


def chosen():
    model = Net()
    model.conv.to(memory_format=torch.channels_last)
    model.register_forward_hook(nothing)

    def call(x):
        with torch.autocast("cpu", torch.bfloat16):
            return model(x).float()

    fit(model, adam(model, foreach=True), call)


def parts():
    model = Net()
    fit(model, torch.optim.Rprop(model.parameters(), 0.01), model.forward)


WAYS = {"whole": whole, "long": long, "silent": silent, "chosen": chosen, "parts": parts}

if __name__ == "__main__":
    WAYS[sys.argv[1]]()

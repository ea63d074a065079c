"""A loop that prints each loss as it is, before a factor of half precision where asked."""

import sys

import torch

torch.manual_seed(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    (loss * 1024.0 if "scaled" in sys.argv else loss).backward()
    optimizer.step()
    print(repr(loss.item()))

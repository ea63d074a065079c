"""A loop with Accelerate; prints its number of steps."""

import torch
from accelerate import Accelerator
from parts import Slow, loss_of
from torch.utils.data import DataLoader

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Linear(8, 2)
model, optimizer, loader = accelerator.prepare(
    model, torch.optim.AdamW(model.parameters()), DataLoader(Slow(50), 5)
)
steps = 0
for _ in range(3):
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(loss_of(model, batch))
            optimizer.step()
            optimizer.zero_grad()
        steps += accelerator.sync_gradients
print(steps)

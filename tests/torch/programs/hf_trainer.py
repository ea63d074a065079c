"""Hugging Face's Trainer, with evaluation and checkpoints; prints its own count of steps."""

import torch
from parts import Slow, loss_of
from transformers import Trainer, TrainingArguments


class Model(torch.nn.Module):
    """A linear model that returns its loss."""

    def __init__(self):
        super().__init__()
        self.model = torch.nn.Linear(8, 2)

    def forward(self, x, labels=None):
        """Return the loss."""
        return {"loss": loss_of(self.model, (x, labels))}


def rows(count):
    """Return rows in the form that the Trainer wants."""
    data = Slow(count)
    return [{"x": x, "labels": y} for x, y in (data[index] for index in range(count))]


trainer = Trainer(
    Model(),
    TrainingArguments(
        "out",
        per_device_train_batch_size=8,
        num_train_epochs=2,
        gradient_accumulation_steps=2,
        use_cpu=True,
        report_to=[],
        save_steps=5,
        eval_strategy="epoch",
        disable_tqdm=True,
    ),
    train_dataset=rows(100),
    eval_dataset=rows(24),
)
trainer.train()
print(trainer.state.global_step)

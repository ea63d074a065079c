"""Trains with the callback of gpucost in it: `lightning`, `spawn` (two ranks) or `transformers`."""

# ruff: noqa: PLC0415 - the library that is asked for

import sys

from torch.utils.data import DataLoader

OPTIONS = {"gpu": False, "interval_s": 0.2}


def with_lightning(way):
    """Fit; the program of the same name has the module."""
    import lightning
    from lightning_fit import Module
    from parts import Slow

    from gpucost.callbacks import LightningCallback

    spawn = way == "spawn"
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        strategy="ddp_spawn" if spawn else "auto",
        devices=2 if spawn else 1,
        callbacks=[LightningCallback("fitted", **OPTIONS)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), DataLoader(Slow(40), 4), DataLoader(Slow(8), 4))


def with_transformers():
    """Train with the Trainer."""
    import torch
    from parts import Slow, loss_of
    from transformers import Trainer, TrainingArguments

    from gpucost.callbacks import TransformersCallback

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = torch.nn.Linear(8, 2)

        def forward(self, x, labels=None):
            return {"loss": loss_of(self.model, (x, labels))}

    data = Slow(40)
    rows = [{"x": x, "labels": y} for x, y in (data[index] for index in range(40))]
    asked = TrainingArguments(
        "out", per_device_train_batch_size=4, num_train_epochs=2, use_cpu=True, report_to=[]
    )
    callback = TransformersCallback("fitted", **OPTIONS)
    Trainer(Model(), asked, train_dataset=rows, callbacks=[callback]).train()


if __name__ == "__main__":
    if sys.argv[1] == "transformers":
        with_transformers()
    else:
        with_lightning(sys.argv[1])

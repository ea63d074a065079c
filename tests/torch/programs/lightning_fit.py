"""Lightning's Trainer; prints its own count of steps."""

import sys

import lightning
import torch
from lightning.pytorch.callbacks import Callback
from parts import Slow, loss_of
from torch.utils.data import DataLoader


class Module(lightning.LightningModule):
    """A linear model."""

    def __init__(self):
        super().__init__()
        self.model = torch.nn.Linear(8, 2)

    def training_step(self, batch, _index):
        """Return the loss."""
        return loss_of(self.model, batch)

    def validation_step(self, batch, _index):
        """Log the loss."""
        self.log("loss", loss_of(self.model, batch))

    def configure_optimizers(self):
        """Return the optimizer."""
        return torch.optim.Adam(self.parameters())


class Count(Callback):
    """Prints the trainer's own count, in each process."""

    def on_train_end(self, trainer, _module):
        """Print it."""
        sys.stdout.write(f"{trainer.global_step}\n")  # one write: lines do not mix
        sys.stdout.flush()


if __name__ == "__main__":
    spawn = sys.argv[1] == "spawn"
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        strategy="ddp_spawn" if spawn else "auto",
        devices=2 if spawn else 1,
        accumulate_grad_batches=2,
        callbacks=[Count()],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), DataLoader(Slow(50), 5), DataLoader(Slow(20), 5))

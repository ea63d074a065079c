"""Keras; prints its batches, and the seconds of its evaluations.

Arguments: the backend, and what feeds it: rows of Keras or a loader of PyTorch.
"""

import os
import sys
import time

os.environ["KERAS_BACKEND"] = sys.argv[1]
import keras
import numpy as np
from parts import Slow
from torch.utils.data import DataLoader

TRUTH = {"evaluation_s": 0.0, "wait_s": 0.0}


class Rows(keras.utils.PyDataset):
    """Batches that take their time."""

    def __init__(self, count, batch_s):
        super().__init__()
        self.count, self.batch_s = count, batch_s

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        begin_s = time.perf_counter()
        time.sleep(self.batch_s)
        TRUTH["wait_s"] += time.perf_counter() - begin_s if self.count == 10 else 0
        return np.ones((4, 8), "float32"), np.zeros((4, 2), "float32")


class Timed(Slow):
    """Items that take their time, which is kept."""

    def __getitem__(self, index):
        begin_s = time.perf_counter()
        item = super().__getitem__(index)
        TRUTH["wait_s"] += time.perf_counter() - begin_s
        return item


class Count(keras.callbacks.Callback):
    """Counts batches and times evaluations."""

    steps = 0

    def on_train_batch_end(self, batch, logs=None):
        """Count."""
        Count.steps += 1

    def on_test_begin(self, logs=None):
        """Begin."""
        self.begin_s = time.perf_counter()

    def on_test_end(self, logs=None):
        """End."""
        TRUTH["evaluation_s"] += time.perf_counter() - self.begin_s


model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(2)])
model.compile("adam", "mse")
loader = sys.argv[2] == "loader"
data = DataLoader(Timed(40, 0.01), 4) if loader else Rows(10, 0.04)
model.fit(data, validation_data=Rows(3, 0.02), epochs=3, verbose=0, callbacks=[Count()])
print(Count.steps, TRUTH["evaluation_s"], TRUTH["wait_s"])

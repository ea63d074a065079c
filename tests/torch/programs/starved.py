"""A loop whose items wait, decode on a core, or are there at once; prints losses, then its time."""

import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

BATCHES = {"waits": 100, "ready": 400, "turns": 260, "epochs": 26}
EPOCHS = {"epochs": 10}
ITEM_S = {"waits": 0.02, "ready": 0.0}  # of four items each
STEP_S = {"waits": 0.02, "ready": 0.01}
SHORT_S = 0.01


class Items(Dataset):
    def __init__(self, way):
        self.way = way

    def __len__(self):
        return 4 * BATCHES[self.way]

    def __getitem__(self, index):
        if wait_s := ITEM_S.get(self.way, SHORT_S):
            time.sleep(wait_s)
        return torch.full((64,), float(index % 7)), torch.zeros(2)


def main(way):
    """Train for an epoch, or several."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 2), torch.nn.Dropout())
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    begin_s = time.perf_counter()
    loader = DataLoader(Items(way), batch_size=4, shuffle=True)
    for x, y in (batch for _ in range(EPOCHS.get(way, 1)) for batch in loader):
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(STEP_S.get(way, SHORT_S))
        print(loss.item().hex())
    print(time.perf_counter() - begin_s)


if __name__ == "__main__":
    main(sys.argv[1])

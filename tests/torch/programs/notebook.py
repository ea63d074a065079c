"""Runs a notebook whose cells train, as `jupyter execute` does; prints what its cells printed."""

import nbformat
from nbclient import NotebookClient

CELLS = """
import os, time, torch
from torch.utils.data import DataLoader, Dataset
torch.manual_seed(0)
torch.set_num_threads(1)
# %%
class Items(Dataset):
    def __len__(self):
        return 400
    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.full((8,), float(index % 7)), torch.zeros(1)
# %%
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for x, y in DataLoader(Items(), batch_size=4, shuffle=True):
    loss = (model(x) - y).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
# %%
print(sorted(name for name in os.environ if name.startswith("GPUCOST_")))
"""

cells = [nbformat.v4.new_code_cell(text) for text in CELLS.split("# %%")]
notebook = nbformat.v4.new_notebook(cells=cells)
NotebookClient(notebook, kernel_name="python3", timeout=600).execute()
for cell in notebook.cells:
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            print(output.text, end="")

"""Loops with a known trouble; none waits by `sleep`. Argument: the name of the loop.

Each times the function that is its trouble by its own clock and writes, at its end, one line of
JSON to the file `truth.json`: the function, and its share of the time since the first step. What a
GPU would compute is computed here, on one thread of the CPU.
"""

import csv
import functools
import io
import json
import logging
import pickle
import queue
import subprocess
import sys
import threading
import time
import zlib
from urllib.request import Request, urlopen

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
WIDTH, SECONDS = 256, 9.0
own = {"name": "", "s": 0.0, "begin_s": 0.0}


def trouble(function):
    """Time a function: it is the trouble."""
    own["name"] = own["name"] or function.__qualname__

    @functools.wraps(function)
    def timed(*arguments):
        begin_s = time.perf_counter()
        try:
            return function(*arguments)
        finally:
            own["s"] += time.perf_counter() - begin_s

    timed.__wrapped__ = function
    return timed


def made(layers=2):
    """Return a model and its optimizer."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(layers)])
    return model, torch.optim.SGD(model.parameters(), 0.0001)


def trained(model, optimizer, batch):
    """Make one step, in mixed precision."""
    with torch.autocast("cpu", torch.bfloat16):
        output = model(batch)
    output.float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def rows(count=32):
    """Return a batch that is there already."""
    return torch.ones(count, WIDTH)


def going(seconds=SECONDS):
    """Yield the number of the step until the time is over."""
    own["begin_s"] = time.perf_counter()
    step = 0
    while time.perf_counter() - own["begin_s"] < seconds:
        yield step
        step += 1


def python(rounds):
    """Work in Python alone."""
    total = 0
    for i in range(rounds):
        total = (total * 31 + i) % 1000003
    return total


def each_step(function):
    """Train, with the trouble at each step."""
    model, optimizer = made()
    slow = trouble(function)
    for _ in going():
        slow()
        trained(model, optimizer, rows())


def count_confusion():
    """Count metrics in Python."""
    table = {}
    for i in range(40_000):
        table[i % 10] = table.get(i % 10, 0) + 1


def jitter():
    """Draw a few numbers in Python: a short call."""
    total = 0
    for i in range(6000):
        total += i * i % 7
    return total


def play():
    """Simulate a game in Python."""
    score = 0
    for move in range(120_000):
        score = (score * 31 + move) % 1000003


PACKED = zlib.compress(np.random.default_rng(0).integers(0, 9, 900_000).astype("i1").tobytes(), 6)


def next_rows():
    """Unpack a batch."""
    values = np.frombuffer(zlib.decompress(PACKED), dtype="i1")[: 32 * WIDTH].astype("f4")
    return torch.from_numpy(values).reshape(32, WIDTH)


def shuffle_numpy():
    """Augment with numpy and make tensors of it."""
    noise = np.sort(np.random.default_rng(1).normal(size=(32, WIDTH * 16)), axis=1)
    return torch.from_numpy(noise[:, :WIDTH].astype("f4"))


def read_csv():
    """Read rows of a CSV text."""
    found = [[float(x) for x in row] for row in csv.reader(io.StringIO(TEXT))]
    return torch.tensor(found)


def load_shard():
    """Load a pickled shard."""
    with open("shard.pkl", "rb") as file:
        values = np.asarray(pickle.load(file), dtype="f4")  # noqa: S301 - ours
        return torch.from_numpy(values[: 32 * WIDTH].reshape(32, WIDTH))


LONG = torch.arange(100_000.0)


def get_batch():
    """Cut a batch out of a long row, window by window, and copy it to where the model is."""
    starts = torch.randint(len(LONG) - WIDTH, (1000,))
    return torch.stack([LONG[i : i + WIDTH] for i in starts]).to("cpu")[:32]


TEXT = "\n".join(",".join(["0.25"] * WIDTH) for _ in range(32))


def reading(function):
    """Train on what a function of the program's own gives."""
    model, optimizer = made()
    slow = trouble(function)
    for _ in going():
        trained(model, optimizer, slow())


def shards():
    """Read a pickle for each batch, which is a fourth of it."""
    with open("shard.pkl", "wb") as file:
        pickle.dump([float(i % 7) for i in range(128 * WIDTH)], file)
    reading(load_shard)


class Packed(Dataset):
    """Items that are unpacked by a library in C."""

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return torch.full((WIDTH,), float(len(zlib.decompress(PACKED)) % 7))


class Parsed(Dataset):
    """Items that are parsed in Python."""

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return torch.full((WIDTH,), python(12_000) / 1e6)


def loading(dataset, **settings):
    """Train on a loader until the time is over."""
    model, optimizer = made()
    if not settings.get("num_workers"):
        type(dataset).__getitem__ = trouble(type(dataset).__getitem__)
    batches = iter(DataLoader(dataset, batch_size=8, **settings))
    for _ in going():
        trained(model, optimizer, next(batches))


def pad(items):
    """Pad items in Python."""
    python(90_000)
    return torch.stack(items)


class Ready(Dataset):
    """Items that are there."""

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return torch.ones(WIDTH)


def collating():
    """A slow collate function."""
    model, optimizer = made()
    batches = iter(DataLoader(Ready(), batch_size=8, collate_fn=trouble(pad)))
    for _ in going():
        trained(model, optimizer, next(batches))


SERVER = """
import http.server, sys
class Served(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        total = 0
        for i in range(200000): total += i
        self.send_response(200); self.end_headers(); self.wfile.write(bytes(4 * 32 * 256))
    do_POST = do_GET
    def log_message(self, *_): pass
server = http.server.HTTPServer(('127.0.0.1', 0), Served)
print(server.server_port, flush=True)
server.serve_forever()
"""


def served(function):
    """Train beside a server in a process of its own, which takes its time."""
    words = [sys.executable, "-I", "-c", SERVER]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        global URL  # noqa: PLW0603 - one server
        URL = f"http://127.0.0.1:{int(server.stdout.readline())}/"
        try:
            function()
        finally:
            server.kill()


def fetch():
    """Fetch a batch over the network."""
    with urlopen(URL) as answer:  # noqa: S310 - ours
        return torch.frombuffer(bytearray(answer.read()), dtype=torch.float32).reshape(32, WIDTH)


def report():
    """Send metrics to a server."""
    request = Request(URL, data=b"loss=1", method="POST")  # noqa: S310 - ours
    with urlopen(request) as answer:  # noqa: S310 - ours
        answer.read()


def log_all():
    """Log each value."""
    for i in range(600):
        logging.getLogger("train").warning("loss of item %d is %s", i, i / 7)


def logged():
    """Log thousands of lines a step to a file."""
    logging.basicConfig(filename="train.log")
    each_step(log_all)


def launches(x):
    """Work through tiny operations, as a loop that launches a kernel for each."""
    for _ in range(3000):
        x = x * 1.0001
    return x


def launching():
    """A step of thousands of tiny operations."""
    model, optimizer = made()
    slow = trouble(launches)
    for _ in going():
        trained(model, optimizer, slow(torch.ones(8, WIDTH)))


def unfused():
    """Many small parameters, and an optimizer that steps one by one."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(150)])
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, foreach=False)
    for _ in going():
        model(torch.ones(4, 8)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def save_all(state):
    """Write a checkpoint."""
    torch.save(state, "model.pt")


def saving():
    """A checkpoint every few steps."""
    model, optimizer = made()
    state = [torch.zeros(3_000_000) for _ in range(4)]
    slow = trouble(save_all)
    for step in going():
        trained(model, optimizer, rows())
        if step % 20 == 19:
            slow(state)


def evaluate(model, batches):
    """Evaluate on a loader."""
    with torch.no_grad():
        for batch in batches:
            for _ in range(20):
                model(batch)


def evaluating():
    """Most of the time goes into evaluation that keeps the device busy."""
    model, optimizer = made()
    held_out = DataLoader(Ready(), batch_size=512, sampler=range(4096))
    slow = trouble(evaluate)
    for step in going():
        trained(model, optimizer, rows(256))
        if step % 50 == 49:
            slow(model, held_out)


class HeldOut(Parsed):
    """The same, for evaluation."""

    def __len__(self):
        return 160

    def __getitem__(self, index):
        return torch.full((WIDTH,), python(30_000) / 1e6)


def evaluating_starved():
    """Evaluation waits for its loader."""
    model, optimizer = made()
    HeldOut.__getitem__ = trouble(HeldOut.__getitem__)
    held_out = DataLoader(HeldOut(), batch_size=8)
    for step in going():
        trained(model, optimizer, rows())
        if step % 100 == 99:
            with torch.no_grad():
                for batch in held_out:
                    model(batch)


def contended():
    """Three threads count in Python beside the loop."""
    for _ in range(3):
        threading.Thread(target=lambda: python(1 << 40), daemon=True).start()
    model, optimizer = made()
    for _ in going():
        trained(model, optimizer, rows())


stopped = threading.Event()


def read_ahead(batches):
    """Read batches into a queue, in Python."""
    while threading.main_thread().is_alive() and not stopped.is_set():
        python(150_000)
        batches.put(rows())


def threaded():
    """A loader in a thread."""
    model, optimizer = made()
    batches = queue.Queue(4)
    reader = threading.Thread(target=read_ahead, args=(batches,))
    reader.start()
    for _ in going():
        trained(model, optimizer, batches.get())
    stopped.set()
    batches.get()
    reader.join()


def decode_beams():
    """Search for the best words in Python."""
    beams = [(0.0, ())]
    for i in range(3000):
        beams = sorted([(s + i % 7, (i,)) for s, _ in beams] + beams)[:8]


def inferring():
    """Inference without a loader: what follows the model is Python."""
    model, _ = made()
    slow = trouble(decode_beams)
    with torch.inference_mode():
        for _ in going():
            model(rows())
            slow()


def inferring_packed():
    """Inference that waits for its loader."""
    model, _ = made()
    Packed.__getitem__ = trouble(Packed.__getitem__)
    batches = iter(DataLoader(Packed(), batch_size=8))
    with torch.inference_mode():
        for _ in going():
            model(next(batches))


def crashing():
    """An error after a while."""
    model, optimizer = made()
    for step in going():
        trained(model, optimizer, rows())
        if step == 300:
            raise ValueError("a label is out of range")


def leaking():
    """History that is kept."""
    model, optimizer = made()
    history = []
    for step in going(110.0):
        trained(model, optimizer, rows(256))
        if step % 16 == 0:
            history.append(np.ones(200_000))


def caching():
    """A first epoch that fills a cache."""
    model, optimizer = made()
    cache, built = {}, time.perf_counter()
    for step in going():
        key = step % 40
        if key not in cache:
            python(1_000_000)
            cache[key] = rows()
        trained(model, optimizer, cache[key])
    return built


def starting():
    """Twelve seconds of preparation, and few of work."""
    begin_s = time.perf_counter()
    while time.perf_counter() - begin_s < 14.0:
        python(100_000)
    model, optimizer = made()
    for step in going():
        trained(model, optimizer, rows())
        if time.perf_counter() - own["begin_s"] > 3.0 and step > 10:
            return


def rebuild_index():
    """Build an index anew."""
    begin_s = time.perf_counter()
    while time.perf_counter() - begin_s < 2.0:
        python(100_000)


def stalling():
    """A stall of 2 s after each second."""
    model, optimizer = made()
    slow = trouble(rebuild_index)
    since_s = time.perf_counter()
    for _ in going():
        trained(model, optimizer, rows())
        if time.perf_counter() - since_s > 1.0:
            slow()
            since_s = time.perf_counter()


class Routed(torch.nn.Module):
    """A layer that works out its routes in Python."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        choose_routes()
        return self.layer(x)


def choose_routes():
    """Choose in Python."""
    total = 0
    for i in range(80_000):
        total = (total * 31 + i) % 1000003


def routing():
    """Python inside the model."""
    global choose_routes  # noqa: PLW0603 - timed from outside
    choose_routes = trouble(choose_routes)
    model = Routed()
    optimizer = torch.optim.SGD(model.parameters(), 0.0001)
    for _ in going():
        trained(model, optimizer, rows())


def healthy():
    """Nothing but work."""
    model, optimizer = made(6)
    for _ in going():
        trained(model, optimizer, rows(512))


LOOPS = {
    "metric": lambda: each_step(count_confusion),
    "short-calls": lambda: each_step(jitter),
    "simulator": lambda: each_step(play),
    "isolated": lambda: each_step(play),
    "routing": routing,
    "unpacking": lambda: reading(next_rows),
    "numpy": lambda: reading(shuffle_numpy),
    "csv": lambda: reading(read_csv),
    "shards": shards,
    "windows": lambda: reading(get_batch),
    "loader-c": lambda: loading(Packed()),
    "loader-python": lambda: loading(Parsed()),
    "loader-worker": lambda: loading(Parsed(), num_workers=1),
    "collating": collating,
    "network-input": lambda: served(lambda: reading(fetch)),
    "network-report": lambda: served(lambda: each_step(report)),
    "logging": logged,
    "launching": launching,
    "unfused": unfused,
    "saving": saving,
    "evaluating": evaluating,
    "evaluating-starved": evaluating_starved,
    "lock": contended,
    "threaded": threaded,
    "inferring": inferring,
    "inferring-loader": inferring_packed,
    "crashing": crashing,
    "leaking": leaking,
    "caching": caching,
    "starting": starting,
    "stalling": stalling,
    "healthy": healthy,
}

if __name__ == "__main__":
    try:
        LOOPS[sys.argv[1]]()
    finally:
        share = own["s"] / max(time.perf_counter() - own["begin_s"], 1e-9)
        with open("truth.json", "w") as file:
            json.dump({"function": own["name"], "share": share}, file)

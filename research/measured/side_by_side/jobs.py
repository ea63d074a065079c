"""The jobs: `step` puts the work of one step, or of one request, on the GPU."""

import io
import random
from collections.abc import Mapping
from typing import ClassVar

import torch
from networks import CUDA, DEVICE, HALF, DecoderLayer, Encoder, gpu_is_ours, resnet50, scaled, there
from PIL import Image, ImageFilter
from torch import nn
from torch.nn import functional


class Job:
    """What runs.

    Attributes:
        ahead: steps that may be on their way while the next is put there.
        rate: requests a second of a service; None: the next step follows at once.
        hints: of its profile.
        items: samples or tokens a step.
        optimizer: of a training job, whose steps gpucost finds by itself.
    """

    ahead = 2
    rate: float | None = None
    hints: ClassVar[Mapping[str, str]] = {"kind": "training", "precision": "bf16"}
    items = 1
    optimizer: torch.optim.Optimizer | None = None

    def step(self) -> None:
        """Put the work of one step on the GPU."""
        raise NotImplementedError

    def descend(self, loss: torch.Tensor) -> None:
        """Take a step against a loss."""
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class ConvTraining(Job):
    """ResNet-50, bf16, batches of 128 copied from pinned memory."""

    def __init__(self) -> None:
        self.items = scaled(128, 2)
        side = scaled(224, 32)
        images = torch.randn(self.items, 3, side, side).to(HALF)
        self.model = there(resnet50())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.images = images.pin_memory() if CUDA else images
        self.labels = torch.randint(1000, (self.items,), device=DEVICE)

    def step(self) -> None:
        """Take the same pictures again."""
        images = self.images.to(DEVICE, non_blocking=True)
        self.learn(images.to(memory_format=torch.channels_last), self.labels)

    def learn(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        """Take a batch and learn from it."""
        with torch.autocast(DEVICE.type, HALF):
            loss = functional.cross_entropy(self.model(images), labels)
        self.descend(loss)


class BertTraining(Job):
    """BERT-base, bf16, AdamW, 64 sequences of 128."""

    def __init__(self) -> None:
        self.items = scaled(64, 2)
        self.model = there(Encoder())
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=CUDA)
        self.tokens = torch.randint(30522, (self.items, scaled(128, 8)), device=DEVICE)

    def step(self) -> None:
        """Take the same sequences again."""
        with torch.autocast(DEVICE.type, HALF):
            told = self.model(self.tokens)
            loss = functional.cross_entropy(told.flatten(0, 1), self.tokens.flatten())
        self.descend(loss)


class SmallPolicy(Job):
    """A small network of reinforcement learning, fp32: actions read back, then an update."""

    ahead = 0
    hints: ClassVar[Mapping[str, str]] = {"kind": "training", "precision": "fp32"}

    def __init__(self) -> None:
        self.items = 256
        hidden = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh())
        self.model = there(nn.Sequential(hidden, nn.Linear(256, 8)))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-4)
        self.seen = torch.randn(self.items, 64)

    def step(self) -> None:
        """Read back actions, then update."""
        seen = self.seen.to(DEVICE)
        with torch.no_grad():
            actions = self.model(seen[:8]).argmax(1).cpu()  # as an environment wants them
        loss = -self.model(seen).log_softmax(1)[:, int(actions[0])].mean()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class Pictures(torch.utils.data.Dataset):
    """JPEG files in memory, decoded, cropped and resized when read."""

    def __init__(self) -> None:
        drawn = random.Random(7)
        self.files = []
        for _ in range(48):
            small = bytes(drawn.randrange(256) for _ in range(24 * 24 * 3))
            image = Image.frombytes("RGB", (24, 24), small).resize((400, 320), Image.BICUBIC)
            kept = io.BytesIO()
            image.filter(ImageFilter.EDGE_ENHANCE).save(kept, "JPEG", quality=90)
            self.files.append(kept.getvalue())

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, number: int) -> tuple[torch.Tensor, int]:
        """Return a picture and its label."""
        image = Image.open(io.BytesIO(self.files[number % len(self.files)])).convert("RGB")
        left, top = random.randrange(100), random.randrange(80)
        side = scaled(224, 32)
        image = image.crop((left, top, left + 240, top + 240)).resize((side, side), Image.BILINEAR)
        flat = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
        return flat.view(side, side, 3).permute(2, 0, 1), number % 1000


class FedTraining(ConvTraining):
    """ResNet-50, batches of 32 from four workers that decode JPEG files."""

    ahead = 1

    def __init__(self) -> None:
        self.items = scaled(32, 2)
        loader = torch.utils.data.DataLoader(
            Pictures(),
            batch_size=self.items,
            num_workers=4,
            pin_memory=CUDA,
            persistent_workers=True,
            prefetch_factor=2,
        )
        model = resnet50()
        self.batches = iter(loader)  # the workers are started before CUDA is
        self.model = there(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)

    def step(self) -> None:
        """Take the next batch."""
        images, labels = next(self.batches)
        images = images.to(DEVICE, non_blocking=True, memory_format=torch.channels_last)
        self.learn(images.to(HALF) / 255.0, labels.to(DEVICE, non_blocking=True))


class Decode(Job):
    """A language model of 3 billion parameters that writes tokens for 4 users, in a CUDA graph."""

    ahead = 0
    hints: ClassVar[Mapping[str, str]] = {"kind": "inference_offline", "precision": "bf16"}

    def __init__(self) -> None:
        gpu_is_ours()
        width, heads, layers = scaled(3072, 64), scaled(24, 2), scaled(26, 2)
        self.items, length = 4, scaled(1024, 16)
        where = {"device": DEVICE, "dtype": HALF}
        self.layers = nn.Sequential(
            *(DecoderLayer(width, heads, self.items, length) for _ in range(layers))
        )
        self.words = nn.Embedding(scaled(32000, 100), width, **where)
        self.head = nn.Linear(width, scaled(32000, 100), bias=False, **where)
        self.tokens = torch.zeros((self.items, 1), dtype=torch.long, device=DEVICE)
        self.graph = self.captured() if CUDA else None

    def captured(self) -> torch.cuda.CUDAGraph:
        """Return the launches of a token as one."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.write()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.write()
        return graph

    @torch.no_grad()
    def write(self) -> None:
        """Write a token for each user."""
        told = self.head(self.layers(self.words(self.tokens)))
        self.tokens.copy_(told.argmax(-1))

    def step(self) -> None:
        """Write a token for each user."""
        if self.graph is not None:
            self.graph.replay()
        else:
            self.write()


class EmbedService(Job):
    """BERT-base that embeds 64 texts a request, 50 requests a second."""

    ahead = 0
    rate = 50.0
    hints: ClassVar[Mapping[str, str]] = {"kind": "inference_online", "precision": "bf16"}

    def __init__(self) -> None:
        self.model = there(Encoder().to(HALF)).eval()
        self.items = scaled(64, 1)
        self.texts = torch.randint(30522, (self.items, scaled(128, 8)))

    @torch.inference_mode()
    def step(self) -> None:
        """Answer a request."""
        self.model.body(self.texts.to(DEVICE)).mean(1).float().cpu()


class VisionService(Job):
    """ResNet-50 that labels 32 pictures a request, 30 requests a second."""

    ahead = 0
    rate = 30.0
    hints: ClassVar[Mapping[str, str]] = {"kind": "inference_online", "precision": "bf16"}

    def __init__(self) -> None:
        side = scaled(224, 32)
        self.items = scaled(32, 1)
        self.model = there(resnet50().to(HALF)).eval()
        self.images = torch.randn(self.items, 3, side, side).to(HALF)

    @torch.inference_mode()
    def step(self) -> None:
        """Answer a request."""
        images = self.images.to(DEVICE, memory_format=torch.channels_last)
        self.model(images).argmax(1).cpu()


class Stream(Job):
    """Sweeps over 3 GiB of memory, as solvers and optimizers do: bound by bandwidth."""

    ahead = 1
    hints: ClassVar[Mapping[str, str]] = {"kind": "training", "precision": "fp32"}

    def __init__(self) -> None:
        gpu_is_ours()
        size = scaled(2**28, 2**12)
        self.a, self.b, self.c = (torch.randn(size, device=DEVICE) for _ in range(3))

    def step(self) -> None:
        """Run eight sweeps."""
        for _ in range(4):
            torch.add(self.a, self.b, alpha=1e-6, out=self.c)
            torch.add(self.c, self.a, alpha=1e-6, out=self.b)


class Matmul(Job):
    """Matrix products in fp32 without TF32: bound by arithmetic."""

    ahead = 1
    hints: ClassVar[Mapping[str, str]] = {"kind": "training", "precision": "fp32"}

    def __init__(self) -> None:
        gpu_is_ours()
        size = scaled(4096, 64)
        torch.backends.cuda.matmul.allow_tf32 = False
        self.a, self.b = (torch.randn(size, size, device=DEVICE) for _ in range(2))

    def step(self) -> None:
        """Run four products."""
        for _ in range(4):
            torch.mm(self.a, self.b)


JOBS: Mapping[str, type[Job]] = {
    "resnet50-train": ConvTraining,
    "bert-train": BertTraining,
    "policy-train": SmallPolicy,
    "jpeg-train": FedTraining,
    "llm-decode": Decode,
    "embed-serve": EmbedService,
    "vision-serve": VisionService,
    "stream-fp32": Stream,
    "matmul-fp32": Matmul,
}

"""The networks of the jobs; tiny ones where there is no GPU, to rehearse on."""

import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
HALF = torch.bfloat16
_GATE: list[Path] = []


def wait_for(gate: Path) -> None:
    """Keep off the GPU until this file is there; what needs none is made before."""
    _GATE.append(gate)


def gpu_is_ours() -> None:
    """Wait until the GPU may be touched."""
    while _GATE and not _GATE[0].exists():
        time.sleep(0.01)
    _GATE.clear()


def there(model: nn.Module) -> nn.Module:
    """Return a model on the GPU."""
    gpu_is_ours()
    return model.to(DEVICE)


def scaled(size: int, tiny: int) -> int:
    """Return a size, or a tiny one where there is no GPU."""
    return size if CUDA else tiny


class Bottleneck(nn.Module):
    """The block of ResNet-50."""

    def __init__(self, planes: int, width: int, stride: int) -> None:
        super().__init__()
        out = width * 4
        self.body = nn.Sequential(
            nn.Conv2d(planes, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        conv = nn.Conv2d(planes, out, 1, stride, bias=False)
        same = stride == 1 and planes == out
        self.short = nn.Identity() if same else nn.Sequential(conv, nn.BatchNorm2d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features of the next block."""
        return functional.relu(self.body(x) + self.short(x))


def resnet50() -> nn.Module:
    """Return ResNet-50 in the host's memory."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    planes = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(scaled(blocks, 1)):
            layers.append(Bottleneck(planes, width, stride if block == 0 else 1))
            planes = width * 4
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(planes, 1000)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


class Encoder(nn.Module):
    """BERT-base: 12 layers of 768, 12 heads, 30,522 words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30522, 768)
        self.places = nn.Embedding(512, 768)
        layer = nn.TransformerEncoderLayer(
            768, 12, 3072, dropout=0.1, activation="gelu", batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, scaled(12, 1), enable_nested_tensor=False)
        self.head = nn.Linear(768, 30522)

    def body(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return a vector for each token."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.layers(self.words(tokens) + self.places(places))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores of all words for each token."""
        return self.head(self.body(tokens))


class DecoderLayer(nn.Module):
    """A layer of a Llama-like decoder with a full cache of fixed length, bf16, on the GPU."""

    def __init__(self, width: int, heads: int, batch: int, length: int) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        inner = int(width * 8 / 3) // 64 * 64
        where = {"device": DEVICE, "dtype": HALF}
        self.qkv = nn.Linear(width, 3 * width, bias=False, **where)
        self.out = nn.Linear(width, width, bias=False, **where)
        self.up = nn.Linear(width, 2 * inner, bias=False, **where)
        self.down = nn.Linear(inner, width, bias=False, **where)
        self.norm1, self.norm2 = nn.RMSNorm(width, **where), nn.RMSNorm(width, **where)
        shape = (batch, heads, length, width // heads)
        self.keys, self.values = torch.randn(shape, **where), torch.randn(shape, **where)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features of one more token for each user."""
        batch = x.shape[0]
        q, k, v = (
            one.view(batch, 1, self.heads, -1).transpose(1, 2)
            for one in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        self.keys[:, :, -1:] = k
        self.values[:, :, -1:] = v
        told = functional.scaled_dot_product_attention(q, self.keys, self.values)
        x = x + self.out(told.transpose(1, 2).reshape(batch, 1, self.width))
        gate, up = self.up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(functional.silu(gate) * up)

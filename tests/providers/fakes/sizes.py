"""Sizes as DigitalOcean prints them: CPU sizes for a second page, GPU sizes old and new."""

from typing import Any


def a_size(slug: str, price: float, **changes: Any) -> dict[str, Any]:
    """A size with every required field; a GPU size where `gpu_info` is given."""
    size = {
        "slug": slug,
        "memory": 8192,
        "vcpus": 4,
        "disk": 160,
        "transfer": 5.0,
        "price_monthly": round(price * 744, 2),
        "price_hourly": price,
        "regions": ["nyc3", "sfo3"],
        "available": True,
        "description": "Basic",
        "disk_info": [{"type": "local", "size": {"amount": 160, "unit": "gib"}}],
    }
    return size | changes


def a_gpu_size(slug: str, price: float, gpu: str, count: int, **changes: Any) -> dict[str, Any]:
    """A GPU size; `vram` is the total of all its GPUs, as the API prints it."""
    total = changes.pop("vram")
    gpu_info = {"count": count, "model": gpu, "vram": {"amount": total, "unit": "gib"}}
    disks = [
        {"type": "boot", "size": {"amount": 720, "unit": "gib"}},
        {"type": "scratch", "size": {"amount": 5120, "unit": "gib"}},
    ]
    gpu_size: dict[str, Any] = {
        "memory": 245760,
        "vcpus": 20,
        "disk": 720,
        "transfer": 15.0,
        "description": "GPU",
        "disk_info": disks,
        "gpu_info": gpu_info,
    }
    return a_size(slug, price, **(gpu_size | changes))


def the_sizes() -> list[dict[str, Any]]:
    """230 CPU sizes, then GPU sizes: one confirmed, one dearer, one spot, two that are new."""
    cpu = [a_size(f"s-{n}vcpu-test", 0.07143) for n in range(230)]
    return [
        *cpu,
        a_gpu_size("gpu-h100x1-80gb", 4.41, "nvidia_h100", 1, vram=80, regions=[]),
        a_gpu_size("gpu-h100x8-640gb", 36.00, "nvidia_h100", 8, vram=640, regions=[]),
        a_gpu_size("gpu-mi350x1-288gb-spot", 2.46, "amd_mi350x", 1, vram=288, regions=["ric1"]),
        a_gpu_size("gpu-b200x8-1440gb", 39.92, "nvidia_b200", 8, vram=1440, regions=["nyc2"]),
        a_gpu_size("gpu-b200x1-180gb-spot", 2.99, "nvidia_b200", 1, vram=180, regions=["nyc2"]),
    ]

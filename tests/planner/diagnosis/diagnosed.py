"""Profiles with the cause that must come first, that must be named, or that must not be."""

from typing import Any

from planner.profile.model import Latency, Profile, Statistics
from tests.planner.factories import a_profile

BUSY, SM, MEM = "util.kernel_time", "util.sm_active", "mem.used_gib"
WATTS, LIMIT = "power.board_w", "power.limit_w"
CPU_RESTS = {"cpu_util": 0.03}
HIGH_CPU, LOW_CPU = {"cpu_util": 0.95}, {"cpu_util": 0.2}
T4 = {"gpu": "Tesla T4"}


def held(gib: float) -> Statistics:
    """Memory held at most."""
    return Statistics(max=gib)


def one(busy: float, gib: float = 60.0, **more: Any) -> dict[str, Any]:
    """Readings of a GPU: busy time, memory held, and more by short name."""
    names = {"sm": SM, "w": WATTS, "limit": LIMIT, "dram": "util.dram_active"}
    names |= {"tensor": "util.tensor_active", "mc": "util.mem_controller"}
    names |= {"throttle": "throttle.fraction", "temp": "temp.core_c"}
    return {BUSY: busy, MEM: held(gib)} | {names[k]: v for k, v in more.items()}


SERVING = {"kind": "inference_online"}
STEP = {"mean_s": 0.1}

FIRST: list[tuple[str, Profile, str, str]] = [
    (
        "step waits",
        a_profile(one(0.4), **STEP, data_wait_s=0.06),
        "data-loading",
        "measured",
    ),
    ("CPU full, GPU half busy", a_profile(one(0.69), host=HIGH_CPU), "data-loading", "likely"),
    ("CPU full", a_profile(one(0.22), host=HIGH_CPU, cpu_cores=4), "data-loading", "likely"),
    (
        "disk full",
        a_profile(one(0.3), host=LOW_CPU | {"disk_read_mib_s": 210.0}),
        "data-loading",
        "likely",
    ),
    (
        "network full",
        a_profile(one(0.3), host=LOW_CPU | {"net_rx_mib_s": 300.0}),
        "data-loading",
        "possible",
    ),
    ("copies", a_profile(one(0.5), **STEP, h2d_s=0.04), "host-to-device", "measured"),
    ("both low", a_profile(one(0.3), host=LOW_CPU, cpu_cores=32), "host-bound", "likely"),
    ("one core", a_profile(one(0.3), host={"cpu_util": 0.6}, cpu_cores=2), "host-bound", "likely"),
    (
        "one core of many is full",
        a_profile(one(0.3), host=LOW_CPU | {"cpu_busiest_core": 0.97}),
        "host-bound",
        "likely",
    ),
    ("steps do not wait", a_profile(one(0.3), **STEP, data_wait_s=0.001), "host-bound", "likely"),
    (
        "steps written to disk",
        a_profile(one(0.7), **STEP, data_wait_s=0.001, checkpoint_s=0.02),
        "host-bound",
        "measured",
    ),
    (
        "one launch per parameter",
        a_profile(one(0.5), **STEP, data_wait_s=0.001, optimizer_s=0.04),
        "host-bound",
        "measured",
    ),
    (
        "host code between the parts",
        a_profile(one(0.3), **STEP, data_wait_s=0.001, compute_s=0.03),
        "host-bound",
        "measured",
    ),
    (
        "PCIe is full",
        a_profile(one(0.5, 60.0) | {"io.pcie_rx_mib_s": 22000.0}, host=LOW_CPU),
        "host-to-device",
        "likely",
    ),
    (
        "a job that hangs in a collective",
        a_profile(one(1.0, 60.0, sm=0.02), done=0.0, rate_per_s=0.0),
        "idle-held",
        "likely",
    ),
    ("idle by its power", a_profile({MEM: held(0.1), WATTS: 70.0}, gpu="H100"), "idle", "likely"),
    (
        "a video server",
        a_profile(one(0.07) | {"util.encoder": 0.9}, kind="unknown"),
        "well-used",
        "likely",
    ),
    (
        "the network between machines is full",
        a_profile(
            one(0.97, sm=0.3),
            host={"net_tx_mib_s": 1150.0},
            gpu_count=16,
            nodes=2,
            network_gbps=10.0,
        ),
        "communication-bound",
        "likely",
    ),
    (
        "machines on a slow network, SMs not filled",
        a_profile(one(0.97, sm=0.3), gpu_count=16, nodes=2, network_gbps=10.0),
        "slow-interconnect",
        "likely",
    ),
    (
        "memory keeps the batch small",
        a_profile(one(0.9, 79.0, sm=0.4), batch_per_gpu=1),
        "memory-pressure",
        "likely",
    ),
    (
        "bandwidth",
        a_profile(one(0.95, sm=0.7, dram=0.8, tensor=0.05)),
        "memory-bandwidth-bound",
        "measured",
    ),
    ("half busy", a_profile(one(0.3), host={"cpu_util": 0.6}), "host-bound", "possible"),
    (
        "requests prepared on a full CPU",
        a_profile(one(0.3), host=HIGH_CPU, **SERVING),
        "host-bound",
        "likely",
    ),
    ("nothing runs", a_profile(one(0.0, 0.3), host=CPU_RESTS), "idle", "measured"),
    ("no kernel, CPU not read", a_profile(one(0.0, 0.3)), "idle", "likely"),
    ("nothing runs, no memory read", a_profile({BUSY: 0.0}), "idle", "likely"),
    ("memory held", a_profile(one(0.0, 30.0), host=CPU_RESTS), "idle-held", "measured"),
    ("memory held, few kernels", a_profile(one(0.01, 30.0), host=CPU_RESTS), "idle-held", "likely"),
    ("memory held, CPU not read", a_profile(one(0.0, 30.0)), "idle-held", "likely"),
    ("notebook", a_profile(one(0.1), kind="interactive"), "bursty-interactive", "likely"),
    (
        "bursts",
        a_profile({BUSY: Statistics(mean=0.2, p50=0.01, p95=0.9)}, kind="unknown"),
        "bursty-interactive",
        "possible",
    ),
    ("thin requests", a_profile(one(0.2, 8.0), **SERVING), "under-used-inference", "likely"),
    (
        "thin batches",
        a_profile(one(0.2, 8.0), kind="inference_offline"),
        "under-used-inference",
        "likely",
    ),
    (
        "one of eight idle",
        a_profile(each=[one(0.95)] * 7 + [one(0.0)], gpu_count=8),
        "imbalanced-gpus",
        "measured",
    ),
    (
        "exposed communication",
        a_profile(one(0.7), gpu_count=8, **STEP, comm_s=0.03),
        "communication-bound",
        "measured",
    ),
    (
        "hot",
        a_profile(one(0.7, throttle=0.4, temp=Statistics(max=91.0))),
        "thermal-throttled",
        "measured",
    ),
    (
        "at the power limit",
        a_profile(one(0.7, sm=0.5, throttle=0.4, w=395.0, limit=400.0)),
        "power-throttled",
        "measured",
    ),
    ("kernels too small", a_profile(one(0.9, 10.0, sm=0.2)), "small-batch", "likely"),
    (
        "a language model beside its tensor cores",
        a_profile(one(0.99, sm=0.71, tensor=0.19, dram=0.33), precision="bf16", parameters=16e9),
        "small-batch",
        "likely",
    ),
    (
        "a language model on its tensor cores",
        a_profile(one(0.99, sm=0.8, tensor=0.45, dram=0.33), precision="bf16", parameters=16e9),
        "well-used",
        "measured",
    ),
    (
        "T4 in fp32",
        a_profile(one(0.9, 14.0), precision="fp32", **T4),
        "no-mixed-precision",
        "likely",
    ),
    ("A100 in TF32", a_profile(one(0.9), precision="tf32"), "no-mixed-precision", "likely"),
    ("useful work", a_profile(one(0.97, sm=0.9)), "well-used", "measured"),
    ("at the power of work", a_profile(one(0.97, w=300.0, limit=400.0)), "well-used", "likely"),
    ("busy, little else known", a_profile(one(0.97)), "well-used", "possible"),
    ("spinning", a_profile(one(1.0, w=90.0, limit=400.0)), "unmeasured", "possible"),
    ("only memory read", a_profile({MEM: held(20.0)}), "unmeasured", "possible"),
    ("waits, host unknown", a_profile(one(0.3)), "unmeasured", "possible"),
    (
        "too slow",
        a_profile(one(0.6), latency_slo_ms=50.0, latency_ms=Latency(p99=55.0), **SERVING),
        "latency-risk",
        "measured",
    ),
]
ALSO: list[tuple[str, Profile, str]] = [
    ("dram", a_profile(one(0.95, sm=0.7, dram=0.8)), "memory-bandwidth-bound"),
    ("memory controller", a_profile(one(0.95, mc=0.9)), "memory-bandwidth-bound"),
    ("memory full", a_profile(one(0.95, 79.0)), "memory-pressure"),
    ("little memory and few SMs", a_profile(one(0.6, 8.0, sm=0.2)), "over-provisioned-gpu"),
    ("little memory and power", a_profile(one(0.6, 8.0, w=100.0)), "over-provisioned-gpu"),
    (
        "PCIe between GPUs",
        a_profile(one(0.9), gpu_count=4, interconnect="pcie", parallelism="ddp"),
        "slow-interconnect",
    ),
    (
        "machines on 10 Gbit/s",
        a_profile(one(0.9), gpu_count=16, nodes=2, network_gbps=10.0),
        "slow-interconnect",
    ),
    ("target unchecked", a_profile(one(0.6), latency_slo_ms=9.0, **SERVING), "latency-risk"),
    ("spinning, little power", a_profile(one(1.0, 10.0, w=90.0)), "small-batch"),
]
NOT: list[tuple[str, Profile, str]] = [
    ("AMP is on", a_profile(one(0.9)), "no-mixed-precision"),
    (
        "machines on 400 Gbit/s",
        a_profile(one(0.9), gpu_count=16, nodes=2, network_gbps=400.0),
        "slow-interconnect",
    ),
    (
        "tensor cores are busy",
        a_profile(one(0.9, tensor=0.4), precision="fp32"),
        "no-mixed-precision",
    ),
    ("no tensor cores", a_profile(one(0.9), precision="fp32", gpu="K80"), "no-mixed-precision"),
    ("precision unknown", a_profile(one(0.9), precision=None), "no-mixed-precision"),
    ("no reading is not idleness", a_profile({}), "idle"),
    ("drawing power is not idleness", a_profile(one(0.01, 0.2, w=300.0)), "idle"),
    ("a spinning GPU is not well used", a_profile(one(1.0, w=90.0, limit=400.0)), "well-used"),
    (
        "starved is not over-provisioned",
        a_profile(one(0.3, 8.0, sm=0.2), host=HIGH_CPU),
        "over-provisioned-gpu",
    ),
    ("busy enough", a_profile(one(0.71), host=HIGH_CPU), "data-loading"),
    ("CPU not full", a_profile(one(0.6), host={"cpu_util": 0.79}), "data-loading"),
    ("starved is not well used", a_profile(one(0.9), host=HIGH_CPU), "well-used"),
    (
        "no wait in the steps",
        a_profile(one(0.4), host=HIGH_CPU, **STEP, data_wait_s=0.001),
        "data-loading",
    ),
    ("one GPU is never uneven", a_profile(one(0.9)), "imbalanced-gpus"),
]

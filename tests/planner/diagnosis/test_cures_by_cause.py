"""What a cure cannot mend it is not named for: exchange, simulators, full loaders, start-up.

Every figure here was worked out by hand before the product was run.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from planner.actions import action
from planner.diagnosis.diagnose import diagnose, fixes
from planner.prediction.layout import Layout
from planner.prediction.predict import predict, split_time
from planner.profile.model import Latency, Phase, Profile, Statistics, Wait
from planner.signals.signals import read_signals
from pricing.hardware import gpus
from tests.planner.factories import a_profile, predict_from

AT_WORK = {"util.kernel_time": 0.97, "util.sm_active": 0.4}
EXCHANGE = {"mean_s": 2.0, "compute_s": 1.0, "comm_s": 0.9, "gpu_count": 8, "interconnect": "pcie"}


def called_for(profile: Profile) -> set[str]:
    """The codes of all actions that the findings call for."""
    return {code for finding in diagnose(profile) for code in finding.actions}


def exchanging(parallelism: str, parameters: float, held_gib: float, **fields: Any) -> Profile:
    """Eight A100 of 80 GB that exchange for 45 % of every step."""
    held = AT_WORK | {"mem.used_gib": Statistics(max=held_gib)}
    sizes = {"parallelism": parallelism, "parameters": parameters}
    return a_profile(held, precision="bf16", **EXCHANGE | sizes | fields)


def test_a_game_of_pong_has_no_pictures_to_decode() -> None:
    """Frames of environments that fill 16 cores: step them on the GPU, or take a smaller GPU."""
    use = {"util.kernel_time": 0.18, "mem.used_gib": 3.1}
    job = {"name": "ppo-pong-16env", "framework": "pytorch", "unit": "frame", "rate_per_s": 1600.0}
    codes = called_for(a_profile(use, host={"cpu_util": 0.93}, **job))
    assert {"gpu-environments", "smaller-gpu"} <= codes
    assert "gpu-preprocessing" not in codes


@pytest.mark.parametrize("parallelism", ["expert", "tensor"])
def test_accumulation_removes_no_exchange_within_a_micro_batch(parallelism: str) -> None:
    """Tokens go to their experts, and halves of layers are added up, in every micro-batch."""
    codes = called_for(exchanging(parallelism, 7e9, 40.0))
    assert "gradient-accumulation" not in codes
    assert ("overlap-experts" in codes) == (parallelism == "expert")


@pytest.mark.parametrize(
    ("nodes", "held_gib", "fits"), [(2, 30, True), (2, 60, False), (1, 30, False)]
)
def test_experts_of_several_machines_fit_one_with_half_of_the_memory_free(
    nodes: int, held_gib: float, *, fits: bool
) -> None:
    """In one of two machines each GPU holds twice as many; in one machine they are already."""
    codes = called_for(exchanging("expert", 7e9, held_gib, nodes=nodes))
    assert ("experts-in-machine" in codes) == fits


def test_accumulation_is_no_cure_of_sharded_weights() -> None:
    """Weights are gathered in every micro-batch of FSDP and ZeRO-3; gradients of copies once."""
    codes = called_for(exchanging("fsdp", 1e9, 40.0))
    assert "gradient-accumulation" not in codes
    assert "hybrid-sharding" in codes
    replicas = exchanging("ddp", 1e9, 40.0)
    assert "hybrid-sharding" not in called_for(replicas)
    effect = action("gradient-accumulation", read_signals(replicas)).effect
    assert effect == pytest.approx((1.0, 2.0, 4.0))


def simulating(**fields: Any) -> Profile:
    """A policy whose simulator fills eight cores, in a program that says PyTorch only."""
    wait = Wait(place="env_step (sim.py:9)", doing="host", phase="steady", time_fraction=0.8)
    return a_profile(
        {"util.kernel_time": 0.12},
        host={"cpu_util": 0.99},
        cpu_cores=8,
        framework="pytorch",
        unit="sample",
        mean_s=0.45,
        data_wait_s=0.36,
        waits=(wait,),
        **fields,
    )


def test_a_simulator_on_full_cores_is_no_input_to_prepare() -> None:
    """Its steps follow from what the policy did: more cores or a GPU's, nothing beforehand."""
    first = diagnose(simulating())[0]
    assert first.code == "data-loading"
    assert "simulator" in str(first.cause)
    assert first.actions == ("gpu-environments",)


@pytest.mark.parametrize(("workers", "named"), [(16, False), (4, True), (None, True)])
def test_no_more_workers_where_the_cores_are_good_for_none(
    workers: int | None, *, named: bool
) -> None:
    """Sixteen are the most that any loader gained by; thirty cores are good for those."""
    profile = a_profile(
        {"util.kernel_time": 0.4},
        host={"cpu_util": 0.12, "net_rx_mib_s": 117.0},
        cpu_cores=30,
        framework="pytorch",
        unit="image",
        mean_s=0.36,
        data_wait_s=0.2,
        loader_workers=workers,
    )
    assert ("dataloader-workers" in called_for(profile)) == named
    assert "local-cache" in called_for(profile)


FLAT = {"cpu_util": 0.17, "disk_read_mib_s": 124.0}
STREAMED = {"cpu_util": 0.27, "net_rx_mib_s": 1080.0}


@pytest.mark.parametrize(
    ("host", "words", "first"),
    [(FLAT, "124 MiB/s", "faster-disk"), (STREAMED, "1,080 MiB/s", "data-near-gpu")],
)
def test_reads_that_wait_are_not_decoded_faster(
    host: dict[str, float], words: str, first: str
) -> None:
    """Idle cores and a flat 124 MiB/s (gp3's base is 125), or 1,080 over the network.

    The cause has the figure; what spares the cores is no cure.
    """
    profile = a_profile(
        {"util.kernel_time": 0.4},
        host=host,
        cpu_cores=48,
        framework="pytorch",
        unit="image",
        mean_s=0.26,
        data_wait_s=0.145,
        loader_workers=24,
    )
    finding = diagnose(profile)[0]
    assert (finding.code, finding.confidence, finding.actions[0]) == (
        "data-loading",
        "measured",
        first,
    )
    assert words in str(finding.cause)
    assert not {"gpu-preprocessing", "offline-preprocessing"} & called_for(profile)
    fast = a_profile(
        {"util.kernel_time": 0.4},
        host=FLAT | {"disk_read_mib_s": 900.0},
        mean_s=1.0,
        data_wait_s=0.5,
    )
    assert "faster-disk" not in called_for(fast)


@pytest.mark.parametrize("step", [{}, {"mean_s": 0.07, "data_wait_s": 0.05, "loader_workers": 14}])
def test_full_cores_gain_nothing_by_what_asks_for_cores(step: dict[str, float]) -> None:
    """99 % of 12 cores: neither workers nor a cache gain; what is read is unknown."""
    profile = a_profile(
        {"util.kernel_time": 0.08},
        host={"cpu_util": 0.99},
        cpu_cores=12,
        framework="pytorch",
        unit="step",
        **step,
    )
    assert diagnose(profile)[0].code == "data-loading"
    assert "local-cache" not in called_for(profile)
    assert not fixes(diagnose(profile), read_signals(profile))


@pytest.mark.parametrize("kind", ["unknown", "inference_offline"])
def test_a_simulation_on_full_cores_waits_for_them(kind: str) -> None:
    """OpenFOAM: 99 % of 8 cores, GPU 11 %. An A100 is no faster; twice the cores are."""
    profile = a_profile(
        {"util.kernel_time": 0.11},
        host={"cpu_util": 0.99},
        gpu="V100-16GB",
        cpu_cores=8,
        framework="openfoam",
        precision="fp64",
        kind=kind,
    )
    first = diagnose(profile)[0]
    assert (first.code, first.waste_fraction, first.actions) == (
        "data-loading",
        0.89,
        ("gpu-offload", "smaller-gpu"),
    )
    assert "fills its cores" in str(first.cause)
    for cores, least, most in ((8.0, 0.99, 1.01), (16.0, 1.2, 2.0), (4.0, 0.4, 0.6)):
        target = Layout(gpu=gpus()["A100-SXM-80GB"], cpu_cores=cores, interconnect="single")
        assert least < predict_from(profile, (), target, (), split_time(profile)).mid < most


def phased(*phases: tuple[str, float, float], **fields: Any) -> Profile:
    """A job with phases: kind, share of the recording, kernel time."""
    read = tuple(
        Phase(kind=k, total_s=share * 3600.0, time_fraction=share, kernel_time=busy, count=40)
        for k, share, busy in phases
    )
    busy = sum(share * busy for _, share, busy in phases)
    return a_profile({"util.kernel_time": busy}, phases=read, **fields)


def test_runs_that_start_again_waste_their_start() -> None:
    """40 starts take 35 % of a recording: that is wasted, whether steps were counted or not."""
    profile = phased(("start-up", 0.35, 0.0), ("steady", 0.65, 0.9), kind="inference_offline")
    first = diagnose(profile)[0]
    assert (first.code, first.waste_fraction) == ("start-up", 0.35)
    assert first.actions == ("keep-caches", "longer-runs")


def test_preparing_data_on_a_held_gpu_is_waste_with_a_cure() -> None:
    """55 % at a GPU of 0; what else waits shares what is left of the idle time."""
    profile = phased(
        ("data-preparation", 0.55, 0.0),
        ("steady", 0.45, 0.8),
        host={"cpu_util": 0.6},
        framework="xgboost",
    )
    first = diagnose(profile)[0]
    assert (first.code, first.waste_fraction) == ("start-up", 0.55)
    assert first.actions[0] == "prepare-before"
    assert sum(f.waste_fraction or 0.0 for f in diagnose(profile)) <= 0.64 + 1e-9


def test_a_faster_gpu_shortens_no_preparation() -> None:
    """Of 55 % without a kernel at most 1 / 0.55 = 1.82x is left to an infinitely fast GPU."""
    profile = phased(
        ("data-preparation", 0.55, 0.0),
        ("steady", 0.45, 0.8),
        gpu="V100-16GB",
        framework="xgboost",
        precision="fp32",
    )
    assert split_time(profile).host == pytest.approx(0.55)
    assert predict(profile, gpu="B200-SXM").high < 1.82


def test_a_start_takes_no_part_of_a_step() -> None:
    """Steps communicate for 45 % of their time, whatever the program does before the first."""
    steps = exchanging("ddp", 1e9, 40.0)
    start = Phase(kind="start-up", total_s=1400.0, time_fraction=0.35, kernel_time=0.0, count=9)
    steady = Phase(kind="steady", total_s=2600.0, time_fraction=0.65, kernel_time=0.97, count=9)
    parts = split_time(replace(steps, phases=(start, steady)))
    assert (parts.host, parts.steps) == pytest.approx((0.35, 0.65))
    assert parts.kernels / parts.steps == pytest.approx(1.0)


def first_cure(code: str, profile: Profile) -> str:
    """The first action of a finding."""
    return next(f for f in diagnose(profile) if f.code == code).actions[0]


@pytest.mark.parametrize(("core", "cure"), [(1.0, "cuda-graphs"), (0.3, "quantization")])
def test_a_stream_that_launches_hold_back_is_launched_otherwise(core: float, cure: str) -> None:
    """1,185 launches of 7 ms in a frame of 54: smaller numbers are launched as often."""
    near = {"latency_slo_ms": 66.0, "latency_ms": Latency(p50=53.7, p99=60.0)}
    host = {"cpu_util": 0.07, "cpu_busiest_core": core}
    stream = a_profile(
        {"util.kernel_time": 0.14}, kind="inference_online", framework="pytorch", host=host, **near
    )
    assert first_cure("latency-risk", stream) == cure


@pytest.mark.parametrize(("read", "counts"), [(None, False), (0.2, False), (60.0, True)])
def test_a_cache_counts_where_a_disk_or_a_network_is_read(read: float, *, counts: bool) -> None:
    """A loader that waits may compute all the time: a copy on the scratch disk is no cure then."""
    host = {"cpu_util": 0.4} | ({} if read is None else {"net_rx_mib_s": read})
    waits = {"mean_s": 2.0, "data_wait_s": 0.6, "compute_s": 0.9}
    signals = read_signals(a_profile({"util.kernel_time": 0.6}, host=host, **waits))
    assert action("local-cache", signals).is_proved(signals) == counts


def test_neighbours_are_sampled_on_the_gpu() -> None:
    """Where no disk is read, more loaders sample on the same cores."""
    waits = {"mean_s": 0.0293, "data_wait_s": 0.0207, "compute_s": 0.0082, "framework": "dgl"}
    graph = a_profile({"util.kernel_time": 0.28}, host={"cpu_util": 0.55}, **waits)
    assert first_cure("data-loading", graph) == "gpu-sampling"
    assert "local-cache" not in called_for(graph)


@pytest.mark.parametrize(("unit", "dali"), [("image", True), ("request", False)])
def test_requests_are_decoded_on_the_gpu_where_they_are_pictures(unit: str, *, dali: bool) -> None:
    """A full CPU beside a service that shows no picture is given cores."""
    service = a_profile(
        {"util.kernel_time": 0.3}, kind="inference_online", unit=unit, host={"cpu_util": 0.97}
    )
    assert ("gpu-preprocessing" in called_for(service)) == dali


@pytest.mark.parametrize("kind", ["training", "data_preparation", "unknown"])
@pytest.mark.parametrize("reads_mib_s", [0.0, 240.0])
def test_full_cores_beside_an_unused_gpu_are_no_slow_disk(kind: str, reads_mib_s: float) -> None:
    """Cores 97 % full and no kernel: the GPU is not used, whatever the disk reads meanwhile."""
    first, *_ = diagnose(
        a_profile(
            {"util.kernel_time": 0.0, "mem.used_gib": Statistics(max=0.4)},
            kind=kind,
            host={"cpu_util": 0.97, "disk_read_mib_s": reads_mib_s},
        )
    )
    assert (first.code, first.actions) == ("idle", ("use-gpu",))

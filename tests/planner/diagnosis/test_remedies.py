"""Actions: what they gain, where, for whom, how they combine and how they are applied."""

import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from planner.actions import ACTIONS, Action, action, combined
from planner.actions.action import FRAMEWORKS, PART_OF, compatible
from planner.actions.settings import Settings, profiled_run, settings_of
from planner.diagnosis.diagnose import diagnose, fixes, rule
from planner.models.interruption import CheckpointCosts, checkpoint_every_s, mean_up_s
from planner.prediction.predict import predict
from planner.profile.kinds import WORDS
from planner.profile.model import Profile, Statistics, Wait
from planner.signals.signals import SIGNALS, read_signals
from tests.planner.diagnosis.test_diagnose import profiles
from tests.planner.factories import a_profile

each_action = pytest.mark.parametrize("one", ACTIONS.values(), ids=lambda a: a.code)
BUSY, SM, HELD = "util.kernel_time", "util.sm_active", "mem.used_gib"


def settings(code: str, profile: Profile) -> Settings:
    """What an action sets in a job where it runs today."""
    return settings_of(code, read_signals(profile), profiled_run(profile))


@each_action
def test_an_effect_has_a_mechanism_a_range_and_a_source(one: Action) -> None:
    """No gain without what it makes faster and where the figure comes from; else why there is none.

    What the table leaves empty is computed from the profile, worked out by the plan, or unknown.
    """
    assert one.source
    assert one.effort_hours >= 0
    if one.effect is None:
        assert one.grade in {"computed", "planned", "unknown"}
        assert one.estimate is None
    else:
        assert one.mechanism in PART_OF
        assert one.grade in {"measured", "published", "computed", "estimate"}
        assert 0 < one.effect[0] <= one.effect[1] <= one.effect[2]


@each_action
def test_an_action_names_what_exists(one: Action) -> None:
    """Exclusions are actions and mutual, conditions look at signals, memory is a range."""
    assert set(one.excludes) <= set(ACTIONS) - {one.code}
    assert all(one.code in ACTIONS[other].excludes for other in one.excludes)
    assert all(test.signal in SIGNALS for test in one.when)
    assert one.memory is None or one.memory == tuple(sorted(one.memory))


@each_action
def test_an_action_says_how_it_is_applied(one: Action) -> None:
    """Each action has a way: the launcher, lines of code by framework, or another machine."""
    assert one.by in {"launcher", "code", "machine"}
    assert one.environment or one.launcher or one.frameworks or one.programs or one.words
    assert set(one.frameworks) <= set(FRAMEWORKS)
    assert all(way.line or way.sets for way in one.frameworks.values())
    same_machine_type = {"local-cache", "data-near-gpu", "replace-host", "raise-power-limit"}
    same_machine_type |= {"cool-gpu", "reseat-gpu", "faster-disk", "more-host-cores"}
    same_machine_type |= {"see-what-runs", "stage-on-cpu"}
    assert (one.by == "machine") == (one.kind == "structural") or one.code in same_machine_type


def test_hugging_face_is_told_what_its_trainer_overrides() -> None:
    """The Trainer passes num_workers=0 explicitly, so the way is TrainingArguments."""
    assert "dataloader_num_workers" in ACTIONS["dataloader-workers"].lines["transformers"]


def chosen(profile: Profile) -> list[str]:
    """The fixes that the findings of a profile call for."""
    return [a.code for a in fixes(diagnose(profile), read_signals(profile))]


def listed(profile: Profile) -> set[str]:
    """The actions that the findings of a profile name."""
    return {code for finding in diagnose(profile) for code in finding.actions}


STARVED = {BUSY: 0.2}


def test_workers_gain_what_idle_cores_allow() -> None:
    """Loader law: cores^0.8, at most x2.9; a full CPU has 3 % left, an unknown one the range."""
    full, free, unknown = (
        action("dataloader-workers", read_signals(a_profile(STARVED, host=host))).effect
        for host in ({"cpu_util": 0.97}, {"cpu_util": 0.5}, {})
    )
    assert full == pytest.approx((1.0, 0.97**-0.5, 1 / 0.97))
    assert unknown == (1.0, 1.5, 2.9)
    assert free == pytest.approx((1.0, 2**0.4, 2**0.8 * 1.2))


@pytest.mark.parametrize(
    ("gpu", "effect"),
    [
        ("Tesla T4", (1.0, 2.71, 4.75)),
        ("V100-16GB", (1.0, 2.71, 4.75)),
        ("A100-SXM-80GB", (0.97, 1.77, 2.21)),
        ("H100", (0.97, 1.77, 2.21)),
        (None, (0.97, 1.77, 2.21)),
        ("K80", None),
    ],
)
def test_mixed_precision_gains_more_without_tf32(
    gpu: str | None, effect: tuple[float, float, float] | None
) -> None:
    """On Volta and Turing the FP32 base has no tensor cores; before Volta nothing has."""
    signals = read_signals(a_profile(gpu=gpu, precision="fp32"))
    assert action("mixed-precision", signals).effect == effect


@pytest.mark.parametrize(
    ("code", "profile"),
    [
        ("mixed-precision", a_profile(precision="amp-bf16")),
        ("tf32", a_profile(gpu="Tesla T4", precision="fp32")),
        ("tf32", a_profile(precision="tf32")),
        ("quantization", a_profile(kind="training")),
        ("dynamic-batching", a_profile({BUSY: 0.9, SM: 0.3}, kind="training")),
        ("pinned-memory", a_profile({BUSY: 0.3, "io.pcie_rx_mib_s": 22000.0})),
        ("gradient-checkpointing", a_profile(kind="inference_online")),
    ],
)
def test_what_does_not_apply_gains_nothing(code: str, profile: Profile) -> None:
    """Half precision that is on, tensor cores that are not there, another kind of job."""
    assert action(code, read_signals(profile)).effect is None


@pytest.mark.parametrize(
    ("batch", "mid", "high"),
    [(16, 8 / (0.4 + 0.6 * 8), 8 / (0.8 + 0.2 * 8)), (4, 8 / (0.8 + 0.2 * 8), 8.0)],
)
def test_a_larger_batch_follows_the_batch_law(batch: int, mid: float, high: float) -> None:
    """Nine times the batch fits, eight are tried; half of the empty SMs are taken as fixed time.

    All of them of a few items, and at best the step takes no longer.
    """
    profile = a_profile({BUSY: 1.0, SM: 0.2, HELD: Statistics(max=8.0)}, batch_per_gpu=batch)
    effect = action("larger-batch", read_signals(profile)).effect
    assert effect == pytest.approx((0.9, mid, high))
    assert settings("larger-batch", profile) == {"batch_per_gpu": 8 * batch}


def test_prompts_beside_the_first_share_its_weights() -> None:
    """One prompt at a time of a 1.1B model, 9 of 80 GB: eight are 3.5 to 7.3 times the tokens."""
    held = {BUSY: 0.82, SM: 0.22, HELD: Statistics(max=9.0)}
    writer = {"kind": "inference_offline", "parameters": 1.1e9, "unit": "token", "rate_per_s": 48.0}
    one, two = (a_profile(held, batch_per_gpu=batch, **writer) for batch in (1, 2))
    effect = action("larger-batch", read_signals(one)).effect
    assert effect == pytest.approx((8**0.6, 8**0.88, 8**0.955))
    assert "larger-batch" in listed(one)
    assert action("larger-batch", read_signals(two)).effect != effect


def test_half_a_batch_is_accumulated_twice() -> None:
    """What ran out of memory is told both: it is not known how much is missing."""
    profile = a_profile({BUSY: 0.9}, batch_per_gpu=9, ended="gpu-out-of-memory")
    assert settings("smaller-batch", profile) == {"batch_per_gpu": 5, "steps": 2}
    assert diagnose(profile)[0].actions[:2] == ("smaller-batch", "gradient-checkpointing")
    alone = a_profile({BUSY: 0.9}, batch_per_gpu=1, ended="gpu-out-of-memory")
    assert "smaller-batch" not in listed(alone)


@pytest.mark.parametrize(("busy", "wasted"), [(0.58, 0.36), (0.8, 0.2), (0.95, None)])
def test_a_loop_that_reads_each_loss_waits_for_the_gpu(busy: float, wasted: float | None) -> None:
    """A step without the wait takes the longer of launches (0.64) and kernels, not their sum."""
    waits = (Wait(place="train_step (train.py:77)", doing="device", time_fraction=0.36),)
    profile = a_profile({BUSY: busy}, mean_s=0.04, data_wait_s=0.001, waits=waits)
    finding = next((f for f in diagnose(profile) if "no-host-sync" in f.actions), None)
    assert (finding and finding.waste_fraction) == wasted
    assert finding is None or "train.py:77" in str(finding.cause)
    loading = a_profile({BUSY: busy}, mean_s=0.04, data_wait_s=0.015, waits=waits)
    assert "no-host-sync" not in listed(loading)


@pytest.mark.parametrize(
    ("gpu", "where", "code"),
    [
        ("RTX-3090", {}, "cool-gpu"),
        ("RTX-3090", {"provider": "runpod"}, "replace-host"),
        ("RTX-3090", {"owned": False}, "replace-host"),
        ("A100-SXM-80GB", {}, "replace-host"),
    ],
)
def test_a_geforce_board_of_no_stated_machine_is_its_users(
    gpu: str, where: dict[str, object], code: str
) -> None:
    """Nobody rents it, so it is cooled; what a provider owns is replaced."""
    hot = {BUSY: 0.97, "throttle.fraction": 1.0, "temp.core_c": 88.0}
    profile = a_profile(hot, gpu=gpu, **({"provider": None, "instance_type": None} | where))
    assert code in listed(profile)
    assert not {"cool-gpu", "replace-host"} - {code} & listed(profile)


def test_copies_alone_are_no_cure_where_the_loader_is_late() -> None:
    """43 % copies and 13 % waits: with shorter copies the loader sets the pace, so both."""
    step = {"mean_s": 0.06, "data_wait_s": 0.008, "h2d_s": 0.026, "compute_s": 0.024}
    late = a_profile({BUSY: 0.42}, host={"cpu_util": 0.55}, **step)
    assert {"async-copy", "dataloader-workers"} <= listed(late)
    assert "dataloader-workers" not in listed(a_profile({BUSY: 0.42}, **step | {"data_wait_s": 0}))
    alone = predict(late, gpu="A100-SXM-80GB", actions=["async-copy"])
    both = predict(late, gpu="A100-SXM-80GB", actions=["async-copy", "dataloader-workers"])
    assert alone.mid < 1.15 < both.mid < both.high < 1.0 / 0.42


def test_no_checkpoint_is_hours_away() -> None:
    """Young and Daly, but at most an hour: 20 hours are their optimum for eight GPUs, no advice."""
    few = read_signals(a_profile({BUSY: 0.6}, gpu_count=8, mean_s=1.0, checkpoint_s=0.3))
    assert mean_up_s(8) == pytest.approx(54 * 24 * 16384 / 419 * 3600 / 8)
    assert checkpoint_every_s(8) == 3600.0
    assert checkpoint_every_s(8, CheckpointCosts(write_s=1200.0, restart_s=0.0)) == 12000.0
    assert checkpoint_every_s(16384) == pytest.approx(math.sqrt(2 * 120 * mean_up_s(16384)) - 120)
    assert settings("checkpoint-interval", a_profile(gpu_count=8)) == {"interval_s": 3600}
    low, mid, high = action("checkpoint-interval", few).effect or (0, 0, 0)
    assert (low, mid) == (1.0, pytest.approx(0.3 / (300 / 3900)))
    assert high == pytest.approx(0.3 / (30 / 3630))
    assert chosen(a_profile({BUSY: 0.6}, mean_s=1.0, checkpoint_s=0.3)) == ["checkpoint-interval"]


@pytest.mark.parametrize(
    ("code", "profile", "expected"),
    [
        ("dataloader-workers", a_profile(cpu_cores=8), {"num_workers": 7, "prefetch_factor": 4}),
        ("dataloader-workers", a_profile(cpu_cores=None), {}),
        (
            "dataloader-workers",
            a_profile(cpu_cores=64, gpu_count=8, ram_gib=100, host={"ram_used_gib": 90.0}),
            {"num_workers": 3, "prefetch_factor": 4},
        ),
        ("mixed-precision", a_profile(gpu="Tesla T4"), {"dtype": "fp16"}),
        ("mixed-precision", a_profile(gpu="A100-SXM-80GB"), {"dtype": "bf16"}),
        ("larger-batch", a_profile({BUSY: 0.9, HELD: Statistics(max=79.0)}, batch_per_gpu=8), {}),
        (
            "data-parallel",
            a_profile(gpu_count=1024, nodes=128),
            {"nproc_per_node": 8, "max_restarts": 24},
        ),
        (
            "dynamic-batching",
            a_profile(kind="inference_online", latency_slo_ms=200.0),
            {"max_batch": 8, "max_delay_ms": 20.0},
        ),
        ("compile", a_profile(), {}),
    ],
)
def test_settings_follow_the_machine(
    code: str, profile: Profile, expected: dict[str, object]
) -> None:
    """Workers from cores and memory, dtype from the GPU, restarts from the failure rate."""
    assert settings(code, profile) == expected


def test_fixes_leave_results_unchanged() -> None:
    """Only safe actions that gain something are applied unasked, each once."""
    found = chosen(a_profile(STARVED, host={"cpu_util": 0.97}, precision="fp32", unit="image"))
    assert found == ["gpu-preprocessing", "dataloader-workers"]
    assert all(ACTIONS[code].kind == "safe" for code in found)


def test_a_line_that_decodes_is_evidence() -> None:
    """Where the program was seen in load_image, its input is pictures, whatever the unit."""
    for place, counted in (("load_image (data.py:12)", True), ("get_batch (train.py:8)", False)):
        waits = (Wait(place=place, doing="input", time_fraction=0.1),)
        profile = a_profile(STARVED, host={"cpu_util": 0.97}, waits=waits, unit="sample")
        assert ("gpu-preprocessing" in chosen(profile)) == counted


_UNSTATED = ("pytorch", None)  # it may be pictures: named, and not counted on


@pytest.mark.parametrize(
    ("framework", "unit", "counted"),
    [
        ("pytorch", "image", True),
        ("PyTorch 2.9", "video frames", True),
        ("triton", "image", True),
        ("pytorch", "token", False),
        ("pytorch", None, False),
        ("stable-baselines3", "frame", False),
        ("DGL", "node", False),
        ("xgboost", "row", False),
        ("vasp", None, False),
    ],
)
def test_decoding_on_the_gpu_is_for_pictures(
    framework: str,
    unit: str | None,
    counted: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """DALI is counted on where the input is known to be decoded, and nowhere else."""
    busy = {"cpu_util": 0.97}
    profile = a_profile(STARVED, host=busy, framework=framework, unit=unit, rate_per_s=9.0)
    assert ("gpu-preprocessing" in chosen(profile)) == counted
    assert ("gpu-preprocessing" in listed(profile)) == (counted or (framework, unit) == _UNSTATED)


@pytest.mark.parametrize(
    ("framework", "given", "never"),
    [
        ("xgboost", "device-data", {"mixed-precision", "tf32", "gpu-preprocessing", "compile"}),
        ("vasp", None, {"mixed-precision", "tf32", "larger-batch", "dataloader-workers"}),
        ("jax", "dataloader-workers", {"compile", "tf32", "channels-last", "pinned-memory"}),
        ("tensorflow", "dataloader-workers", {"tf32", "channels-last", "fused-optimizer"}),
        ("dgl", "gpu-sampling", {"channels-last", "gpu-preprocessing"}),
        ("rllib", "environment-workers", {"gpu-preprocessing", "dataloader-workers"}),
        ("vllm", "kv-cache-room", {"mixed-precision", "dynamic-batching", "compile"}),
        ("some code of our own", None, {"mixed-precision", "compile", "dataloader-workers"}),
    ],
)
def test_cures_fit_the_framework(framework: str, given: str | None, never: set[str]) -> None:
    """Each family has its own actions, and none that its programs do not have."""
    kind = "inference_online" if framework == "vllm" else "training"
    signals = read_signals(a_profile(framework=framework, precision="fp32", kind=kind))
    codes = {code for code, one in ACTIONS.items() if one.applies(signals)}
    assert not never & codes
    assert given is None or given in codes


def test_where_nothing_is_known_the_cure_is_a_general_one() -> None:
    """A starved VASP run gets none of PyTorch's settings, and an unknown solver general words."""
    profile = a_profile({BUSY: 0.3}, host={"cpu_util": 0.2}, framework="VASP 6.4", precision="fp64")
    first = diagnose(profile)[0]
    assert first.code == "host-bound"
    assert set(first.actions) <= {"share-gpu", "smaller-gpu"}
    unknown = diagnose(replace(profile, job=replace(profile.job, framework="our solver")))[0]
    assert unknown.actions == ("overlap-host",)
    assert ACTIONS["overlap-host"].words


@pytest.mark.parametrize("framework", [None, "our solver", *sorted(WORDS["families"])])
def test_every_wait_has_a_cure_in_every_family(framework: str | None) -> None:
    """Whatever starves a job that ends, or holds it up, something is said that applies to it."""
    names = WORDS["families"].get(framework, (framework,))
    for kind in ("training", "inference_offline"):
        signals = read_signals(a_profile(STARVED, framework=names[0], kind=kind))
        for code in ("data-loading", "host-bound"):
            assert [c for c in rule(code).actions if ACTIONS[c].applies(signals)], (code, kind)


def test_a_program_has_its_own_line() -> None:
    """Each program that a table names is known, has a source, and is one that the action is for."""
    for one in ACTIONS.values():
        for name, way in one.programs.items():
            assert way.line
            assert way.source
            signals = read_signals(a_profile(framework=name))
            assert name in {signals["job.program"], signals["job.family"]}
            assert one.applies(signals)
            assert one.line_for(signals) == way.line
    gromacs = read_signals(a_profile(framework="GROMACS 2024.3"))
    assert "-update gpu" in ACTIONS["gpu-offload"].line_for(gromacs)
    assert not ACTIONS["gpu-offload"].line_for(read_signals(a_profile(framework="VASP 6.4")))


@pytest.mark.parametrize(("of_scratch", "bought"), [(None, True), (3.0, True), (0.1, False)])
def test_no_throughput_is_bought_where_a_local_disk_holds_the_data(
    of_scratch: float | None,
    bought: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """A volume's throughput is billed by the month; the machine's own NVMe is paid for."""
    slow = a_profile(STARVED, host={"cpu_util": 0.1, "disk_read_mib_s": 118.0})
    signals = read_signals(slow, {"data.of_scratch": of_scratch})
    assert ACTIONS["faster-disk"].applies(signals) == bought
    assert ACTIONS["local-cache"].applies(signals) == (of_scratch != 3.0)


@pytest.mark.parametrize(
    ("place", "gains"), [("decode_audio (ffmpeg)", False), ("read_shard (tar.py:9)", True)]
)
def test_a_cache_does_not_decode(place: str, gains: bool) -> None:  # noqa: FBT001
    """Where a core is full all the time, its work and not the disk sets the pace."""
    host = {"cpu_util": 0.05, "cpu_busiest_core": 0.4 if gains else 1.0}
    waits = (Wait(place=place, doing="input", phase="steady", time_fraction=0.68),)
    profile = a_profile(STARVED, host=host, waits=waits, kind="inference_offline")
    cache = action("local-cache", read_signals(profile))
    assert diagnose(profile)[0].code == "data-loading"
    assert (cache.gain is not None and cache.gain[2] > 1.0) == gains


def test_a_busy_gpu_needs_no_fix() -> None:
    """Nothing is changed where nothing is wrong."""
    assert chosen(a_profile({BUSY: 0.95, SM: 0.9})) == []


def test_copies_are_fixed_only_where_copies_wait() -> None:
    """Pinned memory gains on the copying that was timed, and nothing on a job that decodes."""
    copying = a_profile({BUSY: 0.5}, mean_s=1.0, data_wait_s=0.0, h2d_s=0.4)
    assert chosen(copying) == ["pinned-memory", "async-copy"]
    assert action("pinned-memory", read_signals(copying)).effect == pytest.approx(
        (1.0, 1.25, 1 / 0.76)
    )
    starved = read_signals(a_profile({BUSY: 0.5}, mean_s=1.0, data_wait_s=0.4, h2d_s=0.0))
    assert action("pinned-memory", starved).gain == (1.0, 1.0, 1.0)


PARTS = ("input", "host", "kernels")
some_actions = st.lists(st.sampled_from(sorted(ACTIONS)), max_size=8)


@given(profile=profiles(), codes=some_actions)
def test_nothing_is_saved_twice(profile: Profile, codes: list[str]) -> None:
    """Together, actions save no more of a part than the best of each mechanism does alone."""
    signals = read_signals(profile)
    acting = [action(code, signals) for code in codes]
    for part in PARTS:
        whole = combined(acting, part)
        saved = 0.0
        for mechanism in {a.mechanism for a in acting if a.part == part and a.gain}:
            gains = [a.gain for a in acting if a.mechanism == mechanism and a.gain]
            saved += max(0.0, *(1.0 - 1.0 / gain[2] for gain in gains))
        assert 1.0 - 1.0 / whole.high <= saved + 1e-9
        assert saved <= 1.0 + 1e-9
        assert whole == combined([*acting, *acting], part)


@given(profile=profiles(), codes=some_actions, more=st.sampled_from(sorted(ACTIONS)))
def test_one_more_action_takes_nothing_away(profile: Profile, codes: list[str], more: str) -> None:
    """Adding an action never lowers what is expected of the rest."""
    signals = read_signals(profile)
    acting = [action(code, signals) for code in codes]
    more_acting = [*acting, action(more, signals)]
    if more in {
        "gradient-checkpointing",
        "smaller-batch",
        "quantization",
    }:  # they buy memory with time
        return
    for part in PARTS:
        assert combined(more_acting, part).mid >= min(1.0, combined(acting, part).mid) - 1e-9


@given(profile=profiles(), codes=st.lists(st.sampled_from(sorted(ACTIONS)), max_size=4))
def test_the_order_of_actions_does_not_matter(profile: Profile, codes: list[str]) -> None:
    """The same actions gain the same, whichever comes first."""
    signals = read_signals(profile)
    acting = [action(code, signals) for code in codes]
    for part in PARTS:
        results = {combined(order, part) for order in permutations(acting)}
        assert len(results) == 1


@given(profile=profiles())
def test_shares_of_a_part_add_up_to_one_at_most(profile: Profile) -> None:
    """No mechanism takes a share that another one has."""
    signals = read_signals(profile)
    for part in PARTS:
        shares: dict[str, float] = {}
        for code in ACTIONS:
            one = action(code, signals)
            if one.mechanism and one.effect and one.part == part:
                shares[one.mechanism] = max(shares.get(one.mechanism, 0.0), one.share)
        assert sum(shares.values()) <= 1.0 + 1e-9


@given(codes=st.permutations(sorted(ACTIONS)))
def test_kept_actions_exclude_none_of_each_other(codes: list[str]) -> None:
    """Whatever is asked for, what remains goes together."""
    kept = compatible(ACTIONS[code] for code in codes)
    assert not any(a.code in b.excludes for a in kept for b in kept)


@pytest.mark.parametrize(
    ("gpu", "batch", "least", "most"),
    [
        ("A100-SXM-80GB", None, 0.8, 1.0),  # measured x0.85, x0.95, x0.99: no FP8 arithmetic
        ("H100-SXM-80GB", None, 0.95, 1.25),  # measured x0.96, x1.24
        ("A100-SXM-80GB", 1, 1.8, 2.6),  # 4 bits for one stream: measured x2.5
    ],
)
def test_quantization_gains_by_chip_and_streams(
    gpu: str, batch: int | None, least: float, most: float
) -> None:
    """A full server gains little, and nothing where the chip has no arithmetic in 8 bits."""
    job = a_profile(
        kind="inference_online", unit="token", gpu=gpu, precision="bf16", batch_per_gpu=batch
    )
    effect = action("quantization", read_signals(job)).effect
    assert effect is not None
    assert least <= effect[1] <= most


def test_what_is_quantized_is_not_quantized_again() -> None:
    """Weights of 8 and 4 bits leave nothing to do."""
    for precision in ("fp8", "int8", "int4"):
        job = a_profile(kind="inference_online", unit="token", precision=precision)
        assert action("quantization", read_signals(job)).effect is None


@pytest.mark.parametrize(("held", "shared"), [(70.0, False), (20.0, True)])
def test_a_gpu_is_shared_where_its_memory_has_room(held: float, *, shared: bool) -> None:
    """70 of 80 GiB held leave no room for another program, however few the requests."""
    service = a_profile({BUSY: 0.3, HELD: held}, kind="inference_online")
    (finding,) = (f for f in diagnose(service) if f.code == "under-used-inference")
    assert ("share-gpu" in finding.actions) == shared

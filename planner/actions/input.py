"""Actions on the host's side of a job: loading, copying, launching, writing."""

from planner.actions.action import Action
from planner.signals.condition import Test, is_, unless_known
from planner.signals.thresholds import LINK_FULL

_PICTURES = ("images",)
_VLDB = "Mohan et al., VLDB 2021: data stalls fixed give up to 5x on one server"

FEEDING: tuple[Action, ...] = (
    Action(
        code="dataloader-workers",
        title="more loader workers, as processes instead of threads",
        mechanism="loading",
        effect=(1.0, 1.5, 2.9),
        grade="computed",
        source="Synergy tables: 3 to 9 cores per GPU x1.55-2.5, 3 to 12 up to x2.9; with CPU use "
        "measured, by the same law from the idle cores",
        effort_hours=0.5,
        remark="safe only for map-style data sets whose items and sampler draw no random numbers "
        "and share no file handle; an iterable data set gives every batch twice",
    ),
    Action(
        code="gpu-preprocessing",
        title="decode and augment on the GPU (DALI, nvJPEG)",
        mechanism="loading",
        effect=(1.2, 2.0, 5.0),
        grade="estimate",
        source=f"{_VLDB}; the low and middle figures are our estimate",
        effort_hours=4.0,
        when=(Test(signal="job.input", op="in", limit=_PICTURES, or_unknown=True, quiet=True),),
        needs=(is_("job.input", "in", _PICTURES),),
        excludes=("offline-preprocessing",),
        remark="only where images or video are decoded; adds about a tenth to the GPU's own work; "
        "augmentations differ in detail",
    ),
    Action(
        code="environment-workers",
        title="step more environments, in processes beside the learner",
        mechanism="loading",
        grade="computed",
        source="environments do not wait for each other, so their rate grows with the cores that "
        "are idle, at most in proportion",
        effort_hours=4.0,
        remark="off-policy data and more environments at a time change what is learned: watch the "
        "return; on full cores only more cores or an environment on the GPU help",
    ),
    Action(
        code="gpu-sampling",
        title="sample neighbours on the GPU",
        source="DGL's and PyG's own guides: sampling on the GPU with features in pinned memory or "
        "on the device takes the CPU out of the step; no range that holds across graphs",
        effort_hours=6.0,
        remark="the graph's structure must fit GPU memory, or be read over UVA",
    ),
    Action(
        code="device-data",
        title="build the training matrix on the device",
        source="XGBoost's guide to GPU training: QuantileDMatrix from device arrays saves the "
        "copy and much of the memory; no range that holds across data sets",
        effort_hours=1.0,
    ),
    Action(
        code="dataloader-prefetch",
        title="prefetch more batches",
        mechanism="loading",
        grade="computed",
        source="a synchronous loader that is overlapped takes the longer of loading and the rest "
        "instead of their sum",
        effort_hours=0.25,
        remark="gains nothing where batches are prefetched already; needs /dev/shm for workers x "
        "prefetch x batch",
    ),
    Action(
        code="offline-preprocessing",
        title="preprocess once, offline",
        mechanism="loading",
        effect=(1.0, 1.5, 5.0),
        grade="estimate",
        source=f"{_VLDB}; the low and middle figures are our estimate",
        effort_hours=6.0,
        excludes=("gpu-preprocessing",),
        remark="only what is not random; takes disk space",
    ),
    Action(
        code="local-cache",
        title="cache hot data on the scratch disk",
        mechanism="loading",
        grade="computed",
        source=f"loader law: once the disk or network is out of the way, the CPU sets the pace; "
        f"{_VLDB}",
        effort_hours=2.0,
        remark="the scratch disk must hold the data set; it is empty after each start",
    ),
    Action(
        code="persistent-workers",
        title="keep workers between epochs",
        kind="numeric",
        source="starting workers took 25-36 ms an epoch (PyTorch 2.13 and 1.12 on CPU), seconds "
        "where they are spawned and import much",
        effort_hours=0.25,
        remark="random numbers differ from the second epoch on; stale copies break set_epoch",
    ),
    Action(
        code="pinned-memory",
        title="pin host memory",
        mechanism="copying",
        effect=(1.0, 2.0, 2.5),
        grade="published",
        source="NVIDIA developer blog on data transfers: pinned copies more than twice as fast as "
        "pageable ones",
        effort_hours=0.25,
        when=(unless_known("io.pcie_rx_fraction", "<", LINK_FULL),),
        remark="a link that is nearly full is pinned already",
    ),
    Action(
        code="async-copy",
        title="copy to the GPU asynchronously",
        mechanism="copying",
        grade="computed",
        source="copies hidden behind kernels take no time of their own; none to all of it hidden",
        effort_hours=0.5,
        remark="needs pinned memory",
    ),
    Action(
        code="cuda-graphs",
        title="replay steps as CUDA graphs",
        mechanism="launching",
        effect=(1.0, 1.3, 5.0),
        grade="estimate",
        source="our estimate: a replay leaves one launch of thousands, but some programs get no "
        "faster",
        effort_hours=8.0,
        excludes=("compile",),
        remark="needs fixed shapes and no host synchronisation in the step; takes extra memory",
    ),
    Action(
        code="compile",
        title="compile the model (torch.compile, XLA)",
        kind="numeric",
        mechanism="launching",
        effect=(1.0, 1.3, 2.2),
        grade="published",
        source="PyTorch 2 report: +43 % on 163 models (A100), +21 % in fp32, +51 % in AMP",
        effort_hours=4.0,
        excludes=("cuda-graphs",),
        remark="fuses operations, so sums differ in the last bits; 7 % of models did not compile "
        "in that report; a model with hooks may capture nothing",
    ),
    Action(
        code="fused-optimizer",
        title="fused optimiser",
        kind="numeric",
        mechanism="launching",
        effect=(1.0, 2.0, 4.0),
        grade="estimate",
        source="our estimate: one launch for all parameters instead of several for each",
        effort_hours=0.5,
        remark="the order of operations differs in the last bits",
    ),
    Action(
        code="checkpoint-interval",
        title="checkpoint at the best interval",
        mechanism="checkpointing",
        grade="computed",
        source="Young/Daly, M from Meta's Llama 3 report: one interruption in about 50,000 "
        "GPU-hours; at most an hour apart, so that no more is lost (our choice); C 30-300 s",
        effort_hours=0.5,
        remark="rarer checkpoints lose more work when the job is interrupted; the plan works out "
        "the interval on spot from its own interruption rate",
    ),
)

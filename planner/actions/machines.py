"""Actions on how many GPUs work together, and on which machine is paid for."""

from planner.actions.action import Action
from planner.signals.condition import Test, is_
from planner.signals.job_kinds import MAY_ANSWER, MAY_TRAIN

_TRAINS = Test(signal="job.kind", op="in", limit=MAY_TRAIN)
_SERVES = Test(signal="job.kind", op="in", limit=MAY_ANSWER)
_SEVERAL = is_("hardware.gpu_count", ">", 1)
_SCALE = "worked out by the plan: measured scaling and links (planner.prediction.scaling)"
_PREDICTED = "worked out by the plan, offer by offer (planner.prediction.predict, the price list)"
_PRICED = "worked out by the plan from prices and terms"
_LINKS = "NVLink inside a machine, 100 Gbit/s and under 1 ms between machines"

TOGETHER: tuple[Action, ...] = (
    Action(
        code="data-parallel",
        title="data-parallel training",
        kind="numeric",
        grade="planned",
        source=_SCALE,
        effort_hours=8.0,
        when=(_TRAINS,),
        excludes=("fewer-gpus", "sharded-data-parallel"),
        remark="for models that fit one GPU; the effective batch grows with the GPUs",
    ),
    Action(
        code="sharded-data-parallel",
        title="shard parameters (FSDP)",
        kind="numeric",
        grade="planned",
        source=_SCALE,
        effort_hours=16.0,
        when=(_TRAINS, _SEVERAL),
        excludes=("data-parallel",),
        remark=f"for models whose state does not fit one GPU; moves half again as much as data "
        f"parallel, so it wants {_LINKS}",
    ),
    Action(
        code="tensor-parallel",
        title="tensor parallelism",
        kind="numeric",
        grade="planned",
        source=_SCALE,
        effort_hours=24.0,
        when=(_SEVERAL,),
        remark="for layers that do not fit one GPU; exchanges within every layer: NVLink only",
    ),
    Action(
        code="pipeline-parallel",
        title="pipeline parallelism",
        kind="numeric",
        grade="planned",
        source=_SCALE,
        effort_hours=24.0,
        when=(_SEVERAL,),
        remark="for models over several machines on slower links; needs many micro-batches to "
        "keep its stages busy",
    ),
    Action(
        code="numa-binding",
        title="bind processes to NUMA nodes",
        source="no measured range; it helps where a GPU's process runs on the other socket",
        effort_hours=0.5,
    ),
    Action(
        code="nccl-tuning",
        title="tune NCCL for this interconnect",
        source="no measured range; NCCL mostly chooses well, wrong interfaces are the usual find",
        effort_hours=4.0,
        when=(_SEVERAL,),
    ),
)

STRUCTURAL: tuple[Action, ...] = (
    Action(
        code="end-job",
        title="end the job and start it again from its last checkpoint",
        kind="structural",
        source="a job that gets nothing done wastes all that it is billed",
        effort_hours=0.5,
        remark="look first where each process waits (py-spy dump, NCCL_DEBUG=INFO): the cause "
        "comes back if nothing changes",
    ),
    Action(
        code="idle-shutdown",
        title="end the machine when nobody computes",
        kind="structural",
        grade="computed",
        source="none to all of the time that was wholly idle; the plan counts half of it",
        effort_hours=1.0,
    ),
    Action(
        code="newer-gpu",
        title="a newer GPU",
        kind="structural",
        grade="planned",
        source=_PREDICTED,
        effort_hours=1.0,
        excludes=("smaller-gpu",),
    ),
    Action(
        code="smaller-gpu",
        title="a smaller GPU",
        kind="structural",
        grade="planned",
        source=_PREDICTED,
        effort_hours=1.0,
        excludes=("newer-gpu", "more-gpus"),
        remark="memory and latency must fit; never on GPU-Util alone",
    ),
    Action(
        code="fewer-gpus",
        title="fewer GPUs",
        kind="structural",
        grade="planned",
        source=_SCALE,
        effort_hours=1.0,
        when=(_SEVERAL,),
        excludes=("more-gpus", "data-parallel"),
    ),
    Action(
        code="more-gpus",
        title="more GPUs",
        kind="structural",
        grade="planned",
        source=_SCALE,
        effort_hours=1.0,
        excludes=("fewer-gpus", "smaller-gpu", "scale-down", "share-gpu"),
    ),
    Action(
        code="share-gpu",
        title="share a GPU",
        kind="structural",
        grade="planned",
        source="worked out by the plan: compute shares, memory, latency",
        effort_hours=4.0,
        excludes=("more-gpus",),
        remark="refused where memory or latency is not proved to allow it",
    ),
    Action(
        code="spot",
        title="spot capacity",
        kind="structural",
        grade="planned",
        source="worked out by the plan: lost work, restarts, checkpoints",
        effort_hours=4.0,
        excludes=("commit",),
        remark="may be interrupted: needs checkpoints",
    ),
    Action(
        code="commit",
        title="a term commitment",
        kind="structural",
        grade="planned",
        source=_PRICED,
        effort_hours=1.0,
        excludes=("spot",),
    ),
    Action(
        code="move-provider",
        title="move to another provider",
        kind="structural",
        grade="planned",
        source=_PRICED,
        effort_hours=8.0,
    ),
    Action(
        code="scale-down",
        title="fewer replicas",
        kind="structural",
        grade="planned",
        source="worked out by the plan from replicas and demand",
        effort_hours=2.0,
        when=(_SERVES,),
        excludes=("more-gpus",),
    ),
    Action(
        code="reduce-egress",
        title="send less data out",
        kind="structural",
        grade="planned",
        source=_PRICED,
        remark="keep data and readers in one region; compress; a cache in front of the bucket",
    ),
)

"""The limits and the groups of kinds of job (MAY_ takes unknown ones in) that rules name.

Limits are round figures from practice, each with its reason; they are not fitted to any file.
"""

from planner.profile.frameworks import LEARNING
from planner.profile.kinds import kinds, ways

STARVED = 0.7  # below this a GPU waits for a third of the time or more
LOW = 0.5  # what guides to GPU use, and NVIDIA's to SM activity, call low
BUSY_NOW = 0.85  # kernels run nearly all the time; start-up and evaluation take the rest
IDLE = 0.05  # a display or a monitoring agent alone reads up to a few percent
# Mohan et al., VLDB 2021: input made faster gives at most 5 times; from here it fills no tenth.
UNFED = 0.02
NEVER = 0.005  # of the time: reads 0 in whole percent
# Agents and logs move a few KiB a second, and a monitor allocates nothing; our choice.
AT_REST_MIB_S, AT_REST_GIB = 1.0, 0.1
CPU_FULL = 0.8  # schedulers keep a few cores' worth of slack on a saturated host
STEP_SHARE = 0.2  # a fifth of every step is worth an afternoon of work
# At the Young/Daly interval writing takes sqrt(C / 2M) of the time: 4 % for 2 minutes and a failure
# every 12 hours. A tenth is too often for any machine that lives for hours.
CHECKPOINT_SHARE = 0.1
# 10,000 tensors (Llama 3.1 405B has 1,137), 15 launches each, as plain Adam takes, 10 us a launch:
# our bound of what launches alone can take of a step.
LAUNCHES_S = 1.5
PAUSES_S = 120.0  # minutes, not one; our choice: no step and no wait for input lasts so long
PAUSE_S = 5.0  # allocators, collectors and sync points stay far below: the loop waits for somebody
FEWEST_READINGS = 12
"""Fewer rows of a series tell less than the quantiles of all of it do."""
LONG_PAUSE_S = 300.0  # people pause for minutes; a step, a checkpoint, a wait for input seldom
DAY_S = 86_400.0  # what rests at night may be busy by day
NIGHT_S = 28_800.0  # eight hours in which nothing runs, as `signals.open_hours` has it
FAST_READS_MIB_S = 100.0  # near the 125 MiB/s that a default AWS gp3 volume sustains
# Full-sized copies reach about 80 % of a PCIe or network link's rate; above 60 % it is the limit.
LINK_FULL = 0.6
IDLE_POWER = 0.4  # of the limit; boards idle at 10-40 % of it (idle_w in pricing/data/gpus.csv)
# Training runs draw 28-82 % of TDP, median 57 % (Zeus traces); kernels that wait draw 20-30 %.
WORK_POWER = 0.5
SPINNING_POWER = 0.28  # the least of those training runs
NEAR_IDLE_POWER = 1.2  # times idle power; boards of one model differ by less
# A context keeps the clocks up: 1.5 (A100), 1.7 (H100), 2.9 times idle (L40S): arXiv 2605.23918.
CONTEXT_OVER_IDLE = 2.9
# SM activity: NVIDIA's guide to the DCGM fields calls under 0.5 likely ineffective and 0.8 needed
# for effective use of a kernel; means over steps with copies and collectives lie below.
FILLED = 0.6
DRAM_BOUND = 0.6  # three quarters of the 0.8 that the same guide calls the practical peak
BUSIEST = 0.9  # of a GPU's time: the contract's compute share
USABLE = 0.95  # of a GPU's memory, or a slice's: the contract's headroom
LAYERS_FULL = 0.9  # whole layers are loaded, so what is left is less than one and its cache
FULL_MEMORY = 0.95  # what is left is a context or two
LEAK_GIB_PER_H = 0.5  # 12 GiB a day: less fills no machine in a run of days
KV_CACHE_FULL = 0.9  # blocks are handed out whole, so a full cache reads a little less than 1
NEAR_TARGET = 0.9  # of the latency target; what is left is less than two runs differ by
SHARED_MEMORY = 0.75  # of a GPU: beside it fits another program, a quarter at most; our choice
# A tenth of the requests at which a step of decoding computes as long as it reads weights
# (STEPPED_BATCH in planner/models/gpu_speed.py): the other nine tenths of its arithmetic are free.
FEW_RUNNING = 8.0
FEW_ITEMS = 8.0  # a batch that can be doubled three times before it is large by any practice

NODE_NETWORK_GBPS = 100.0  # what guides to data-parallel training ask for between nodes


BUSY = "util.kernel_time.mean"
SM = "util.sm_active.mean"
AT_WORK = "gpus.at_work_share"
POWER = "power.fraction.mean"
CPU = "host.cpu_util.mean"
DATA_WAIT = "step.data_wait_exposed"
COPIES = "step.h2d_exposed"
COMMUNICATION = "step.comm_fraction"


TRAINS = kinds(lambda kind: kind.trains)
MAY_TRAIN = kinds(lambda kind: kind.may_train, or_unknown=True)
WORKS = kinds(lambda kind: kind.has_fixed_work)
MAY_WORK = kinds(lambda kind: kind.has_fixed_work, or_unknown=True)
LEARNS = kinds(lambda kind: kind.has_fixed_work and not kind.serves, or_unknown=True)
MAY_END = kinds(lambda kind: not kind.answers, or_unknown=True)
FAILING = "failing-gpu"  # no setting and no cheaper machine type mends that
LEFT_ON = "left-on"  # the finding of idle time outside of the job, of which no other share is
SERVES = kinds(lambda kind: kind.serves)
MAY_SERVE = kinds(lambda kind: kind.serves, or_unknown=True)
ANSWERS = kinds(lambda kind: kind.answers)
MAY_ANSWER = kinds(lambda kind: kind.answers, or_unknown=True)
TOGETHER = ways(lambda way: way.works_together)

# Families of programs that have the same causes and actions.
LOADERS = tuple(family for family in LEARNING if family != "reinforcement")
OFFLOADERS = ("llama.cpp", "ollama", "koboldcpp", "llamafile")  # layers that do not fit stay in RAM
FUSABLE = ("Adagrad", "Adam", "AdamW", "SGD")  # PyTorch has fused=True for these alone
EAGER = ("pytorch", "graphs", "reinforcement")  # each operation is launched from Python

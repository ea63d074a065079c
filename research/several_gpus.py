"""More GPUs in one node, and more nodes: boxes, clusters and models are left out."""

import errno
from pathlib import Path

import numpy as np
import pandas as pd

from planner.models.communication import Overhead, combine, growth, ring
from planner.models.estimate import Estimate
from research.class_fits import quantile
from research.score import Coverage, Score, Section, errors
from research.throughput import several_gpus

# Boxes whose GPUs speak NVLink (SXM boards, V100 servers); of the rest, GeForce boards from the
# 30 series on have no peer-to-peer access.
_NVLINK = ("SXM", "V100", "p3", "A100_p4")
_GEFORCE = ("3070", "3090")
# How far a link's own median is trusted against that of all links, and the quantile: chosen on
# 1 -> 4 GPUs, of which no figure is in the scores below.
_OWN_LINK, _QUANTILE = 2.0, 0.45
_RUN_TO_RUN = 0.02


def _efficiency(overhead: Overhead) -> Estimate:
    """Return the throughput per GPU over that of one GPU."""
    return Estimate(
        low=1.0 / (1.0 + overhead.bad),
        mid=1.0 / (1.0 + overhead.mid),
        high=1.0 / (1.0 + overhead.good),
        basis="communication that nothing hides",
    )


def boxes(folder: Path, *counts: int) -> pd.DataFrame:
    """Return throughput by box, task and precision for boxes that were measured at all counts."""
    table = several_gpus(folder).dropna(subset=list(counts)).reset_index()
    table["link"] = [link_of(family) for family in table.family]
    for count in (2, 4, 8):
        table[f"e{count}"] = table[count] / table[1] / count
    return table


def link_of(family: str) -> str:
    """Return the class of the links in a box of Lambda's, by its name."""
    if family in _GEFORCE:
        return "geforce"
    return "nvlink" if any(part in family for part in _NVLINK) else "pcie"


def _task_known(table: pd.DataFrame) -> list[float]:
    """Return the efficiency of 8 GPUs from the same task in other boxes."""
    found = []
    for row in table.itertuples():
        peers = (table.link == "geforce") == (row.link == "geforce")
        other = table[(table.family != row.family) & (table.task == row.task) & peers]
        own = other[other.link == row.link]
        trust = len(own) / (len(own) + _OWN_LINK)
        whole = other.e8.quantile(_QUANTILE)
        mine = own.e8.quantile(_QUANTILE) if len(own) else whole
        found.append(float(trust * mine + (1.0 - trust) * whole))
    return found


def _task_median(table: pd.DataFrame) -> list[float]:
    return [
        float(table[(table.family != row.family) & (table.task == row.task)].e8.median())
        for row in table.itertuples()
    ]


def _nothing_known(table: pd.DataFrame) -> list[Overhead]:
    """Return the overhead of 8 GPUs from other tasks in other boxes of the same links."""
    found = []
    for row in table.itertuples():
        other = table[(table.family != row.family) & (table.task != row.task)]
        is_pcie = row.link == "pcie"
        found.append(over_pcie(other) if is_pcie else overheads(other[other.link == row.link]))
    return found


def overheads(table: pd.DataFrame) -> Overhead:
    """Return the overhead of 8 GPUs over some boxes: twentieth, median, nineteen twentieths.

    Like boxes differ by up to 2 % from run to run, so the good end may lie under none.
    """
    share = 1.0 / table.e8 - 1.0
    good, mid, bad = (float(share.quantile(q)) for q in (0.05, 0.5, 0.95))
    return Overhead(good=good - _RUN_TO_RUN, mid=mid, bad=bad)


def over_pcie(table: pd.DataFrame) -> Overhead:
    """Return the overhead of 8 GPUs over PCIe: at least NVLink's times what the links differ by.

    Most rows are of convolution networks, which exchange next to nothing over any link, so the
    boxes' own quantiles tell the two apart by nothing. What they differ by is the ratio of the
    medians in which every task weighs the same: a user's job is a task, not a row.
    """
    pcie, nvlink = (table[table.link == link] for link in ("pcie", "nvlink"))
    ratio = _task_middle(pcie) / _task_middle(nvlink)
    ends = zip(overheads(pcie), overheads(nvlink).times(ratio), strict=True)
    return Overhead(*(max(pair) for pair in ends))


def _task_middle(table: pd.DataFrame) -> float:
    rows = table.assign(share=1.0 / table.e8 - 1.0).sort_values("share", kind="stable")
    weight = 1.0 / rows.groupby("task").task.transform("size")
    at = (weight.cumsum() - weight / 2.0) / weight.sum()
    return float(np.interp(0.5, at, rows.share))


def shares(inside: pd.Series, group: pd.Series) -> dict[str, float]:
    """Return the share of cases inside by group."""
    found = inside.groupby(group).mean()
    return {str(name): float(share) for name, share in found.items()}


def geforce_growth(table: pd.DataFrame) -> float:
    """Return by how much the overhead of 2 GeForce boards grows at 8: the median ratio."""
    boards = table[(table.link == "geforce") & (table.e2 < 1.0)]
    return float(((1.0 / boards.e8 - 1.0) / (1.0 / boards.e2 - 1.0)).median())


def _one_node(folder: Path) -> tuple[list[Score], list[Coverage]]:
    table = boxes(folder, 1, 2, 8)
    true = table.e8.to_numpy()
    blind = _nothing_known(table)
    scores = [
        Score(
            question="1 -> 8 GPUs in one node, one GPU measured",
            cases=len(table),
            ours=errors(_task_known(table), true),
            baseline=("task's median in other boxes", errors(_task_median(table), true)),
            bar=(2.8, 17.0),
            note="task known from other boxes; two odd boxes make the mean",
        ),
        Score(
            question="same, task unseen too (a user's own job)",
            cases=len(table),
            ours=errors([_efficiency(o).mid for o in blind], true),
            baseline=("linear", errors(np.ones(len(table)), true)),
        ),
        Score(
            question="same, 1 and 2 GPUs measured",
            cases=len(table),
            ours=errors(_probed(table), true),
            baseline=("ring: 2 (n - 1) / n", errors(_ring(table), true)),
            bar=(2.2, 7.5),
        ),
    ]
    inside = [
        _efficiency(o).low <= t <= _efficiency(o).high for o, t in zip(blind, true, strict=True)
    ]
    wide = [_efficiency(o).high / _efficiency(o).low for o in blind]
    covered = Coverage(
        question="8 GPUs in one node, box and task unseen",
        share=float(np.mean(inside)),
        factor=float(np.sqrt(np.median(wide))),
        groups=shares(pd.Series(inside), table.link),
    )
    return scores, [covered]


def _probed(table: pd.DataFrame) -> list[float]:
    """Return the efficiency of 8 GPUs from that of 2."""
    boards = {box: geforce_growth(table[table.family != box]) for box in set(table.family)}
    grown = [
        growth(2, 8, link, boards[box]) for box, link in zip(table.family, table.link, strict=True)
    ]
    over = (1.0 / table.e2 - 1.0).clip(lower=0.0).to_numpy()
    return [float(share) for share in 1.0 / (1.0 + over * np.array(grown))]


def _ring(table: pd.DataFrame) -> list[float]:
    over = (1.0 / table.e2 - 1.0).clip(lower=0.0)
    return list(1.0 / (1.0 + over * ring(8) / ring(2)))


def probe_factor(folder: Path) -> float:
    """Return the factor of the 90 % interval of 8 GPUs from a probe on 2, boxes left out."""
    table = boxes(folder, 1, 2, 8)
    off = np.abs(np.log(np.array(_probed(table)) / table.e8.to_numpy()))
    return float(np.exp(quantile(off)))


def placements(folder: Path) -> pd.DataFrame:
    """Return step times: model, cluster, placement (GPUs on each node), local batch, step_s."""
    parts = []
    for path in sorted((folder / "scaling").glob("*/placements-*.csv")):
        rows = pd.read_csv(path, dtype={"placement": str})
        cluster = path.stem.removeprefix("placements-")
        parts.append(rows.assign(model=path.parent.name, cluster=cluster))
    if not parts:
        raise FileNotFoundError(errno.ENOENT, "no such file", str(folder / "scaling"))
    rows = pd.concat(parts)
    keys = ["model", "cluster", "placement", "local_bsz"]
    found = rows.groupby(keys).step_time.median().rename("step_s").reset_index()
    found["nodes"] = found.placement.str.len()
    return found


# Clusters of DGX machines, taken as fast networks; the data does not state their speed.
_FAST = ("dgx", "dgx-ext")


def network_overheads(folder: Path) -> dict[str, Overhead]:
    """Return the overhead of two full nodes over one, at the upper half of the batch sizes."""
    table = placements(folder)
    over: dict[bool, list[float]] = {True: [], False: []}
    for (_, cluster), rows in table.groupby(["model", "cluster"]):
        full = str(max(int(name) for name in rows[rows.nodes == 1].placement))
        steps = rows.pivot_table(index="local_bsz", columns="placement", values="step_s")
        if full * 2 in steps:
            ratio = (steps[full * 2] / steps[full]).dropna()
            over[cluster in _FAST] += list(ratio.iloc[len(ratio) // 2 :] - 1.0)
    return {
        "fast" if fast else "slow": Overhead(
            good=float(np.quantile(values, 0.05)),
            mid=float(np.median(values)),
            bad=float(np.quantile(values, 0.95)),
        )
        for fast, values in over.items()
    }


def _sync(rows: pd.DataFrame, alone: pd.Series, placement: str, power: float) -> float:
    """Return the median time of synchronising in one placement, seconds, by T^g = T1^g + s^g."""
    measured = rows[rows.placement == placement].set_index("local_bsz").step_s
    both = measured.index.intersection(alone.index)
    excess = measured[both] ** power - alone[both] ** power
    return float((excess.clip(lower=1e-12) ** (1.0 / power)).median())


def _predict_nodes(table: pd.DataFrame, power: float, *, probes: int) -> pd.DataFrame:
    """Return predicted and true step time of every placement on several nodes, none of a probe.

    Known are one GPU alone, and two nodes with one GPU each (`probes` 1) or with all of theirs too.
    """
    found = []
    for (model, cluster), rows in table.groupby(["model", "cluster"]):
        alone = rows[rows.placement == "1"].set_index("local_bsz").step_s
        two = rows[rows.nodes == 2]  # noqa: PLR2004 - a probe of two nodes
        if two.empty:
            continue
        fullest = max(two.placement, key=lambda name: (min(name), name))
        known = ["11", fullest][:probes]
        times = [_sync(rows, alone, name, power) for name in known]
        sync = float(np.exp(np.mean(np.log(times))))
        rest = rows[(rows.nodes > 1) & ~rows.placement.isin(known)]
        rest = rest[rest.local_bsz.isin(alone.index)]
        guess = [combine(alone[b], sync, power) for b in rest.local_bsz]
        found.append(
            pd.DataFrame(
                {"model": model, "cluster": cluster, "guess": guess, "true": rest.step_s.to_numpy()}
            )
        )
    return pd.concat(found)


_POWERS = (1.0, 1.5, 2.0, 3.0)


def _nodes(folder: Path) -> list[Score]:
    table = placements(folder)
    one_probe = {p: _predict_nodes(table, p, probes=1) for p in _POWERS}
    scores = []
    for probes, bar in ((1, (13.5, 16.5)), (2, (8.0, 11.5))):
        by_power = {p: _predict_nodes(table, p, probes=probes) for p in _POWERS}
        chosen = {c: _best_elsewhere(one_probe, c) for c in sorted(set(table.cluster))}
        kept = [by_power[p][by_power[p].cluster == c] for c, p in chosen.items()]
        mine = pd.concat(part for part in kept if not part.empty)
        linear = _linear(table)
        scores.append(
            Score(
                question=f"multi-node step time, {'one probe size' if probes == 1 else 'two'}",
                cases=len(mine),
                ours=errors(mine.guess, mine.true),
                baseline=("no communication", errors(linear.guess, linear.true)),
                bar=bar,
                note="exponent chosen on the other clusters, by one probe",
            )
        )
    return scores


def _best_elsewhere(one_probe: dict[float, pd.DataFrame], cluster: str) -> float:
    """Return the exponent that is best with one probe on all other clusters."""

    def mean(power: float) -> float:
        other = one_probe[power][one_probe[power].cluster != cluster]
        return errors(other.guess, other.true).mean

    return min(_POWERS, key=mean)


def _linear(table: pd.DataFrame) -> pd.DataFrame:
    alone = table[table.placement == "1"].set_index(["model", "cluster", "local_bsz"]).step_s
    rest = table[table.nodes > 1].set_index(["model", "cluster", "local_bsz"])
    rest = rest[rest.index.isin(alone.index)]
    return pd.DataFrame({"guess": alone.reindex(rest.index).to_numpy(), "true": rest.step_s})


def section(folder: Path) -> Section:
    """Return all scores of more GPUs."""
    scores, coverages = _one_node(folder)
    return Section(
        title="More GPUs",
        scores=(*scores, *_nodes(folder)),
        coverages=tuple(coverages),
        notes=(
            """\
One node: Lambda's runs on 1 and 8 GPUs (194 cases; multi-GPU bert_base rows are unreliable and
left out); whole boxes are left out. Two figures of the first row (quantile, trust in the own
link) were chosen on 1 -> 4 GPUs of the same boxes, so it is a little flattered. Two boxes (an
A100 40 GB and an H100 PCIe one, whose GPUs talk far slower than like ones) make much of the mean;
nothing known before a run tells them apart. From 2 measured GPUs the mean misses by what one box
of GeForce boards says about the other: there are two. Fitted growths instead of the ring's gave
means of 7.6 to 7.9 and medians of 2.2 to 2.9.""",
            """\
Nodes: BERT and CIFAR-10 on five clusters; known are one GPU alone and the probes named, at every
batch size.""",
        ),
    )

"""Kinds of job and of parallelism say themselves what they mean for a decision."""

import pytest
from msgspec.structs import replace

from planner.profile.codec import dump, parse_profiles
from planner.profile.frameworks import family
from planner.profile.kinds import KINDS, WORDS, JobKind, Parallelism, kinds, ways
from planner.profile.model import Job
from planner.signals import thresholds
from tests.planner.factories import a_profile

ONLINE, OFFLINE = JobKind.INFERENCE_ONLINE, JobKind.INFERENCE_OFFLINE


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ("trains", {JobKind.TRAINING}),
        ("may_train", {JobKind.TRAINING, JobKind.INTERACTIVE}),
        ("serves", {ONLINE, OFFLINE}),
        ("answers", {ONLINE}),
        (
            "has_fixed_work",
            {JobKind.TRAINING, JobKind.DATA_PREPARATION, JobKind.SIMULATION, OFFLINE},
        ),
    ],
)
def test_what_a_kind_of_job_means(asked: str, holds: set[JobKind]) -> None:
    """Which kinds train, serve, answer, or do an amount of work: the contract's meanings."""
    assert {kind for kind in JobKind if getattr(kind, asked)} == holds


@pytest.mark.parametrize(
    ("asked", "lacks"),
    [
        ("works_together", {"none"}),
        ("splits_the_model", {"none", "ddp"}),
        ("splits_a_step", {"none", "ddp", "pipeline", "mixed"}),
        ("survives_a_lost_machine", {"none", "tensor", "pipeline", "expert", "mixed"}),
    ],
)
def test_what_a_way_to_share_work_means(asked: str, lacks: set[str]) -> None:
    """Which ways need several GPUs, split the model, exchange in every layer, survive a loss."""
    assert {str(way) for way in Parallelism if not getattr(way, asked)} == lacks


def test_an_unknown_kind_counts_only_where_asked() -> None:
    """`or_unknown` adds it last; the question itself is not put to it."""
    assert kinds(lambda _: True) == tuple(kind for kind in JobKind if kind is not JobKind.UNKNOWN)
    assert kinds(lambda kind: kind.serves, or_unknown=True) == (ONLINE, OFFLINE, JobKind.UNKNOWN)
    assert ways(lambda way: way.splits_a_step) == ("fsdp", "tensor", "expert")


def test_no_group_of_the_rules_is_empty() -> None:
    """Each group that rules look for holds kinds, programs, families or optimizers that exist."""
    groups = {
        name: group
        for name, group in vars(thresholds).items()
        if name.isupper() and isinstance(group, tuple)
    }
    assert groups
    programs = {program for family in WORDS["families"].values() for program in family}
    programs |= {"Adam", "AdamW", "SGD", "Adagrad"}  # have fused=True in torch.optim
    for name, group in groups.items():
        assert group, name
        assert set(group) <= {*KINDS, *Parallelism, *WORDS["families"], *programs}, name


def test_a_job_takes_words_and_holds_meanings() -> None:
    """Text becomes the kind that it names, also in a changed copy; what is none is refused."""
    job = Job(name="a", kind="training", parallelism="ddp")  # type: ignore[arg-type]
    assert job.kind is JobKind.TRAINING
    assert job.parallelism is Parallelism.DDP
    assert replace(job, kind="interactive").kind is JobKind.INTERACTIVE  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cooking"):
        Job(name="a", kind="cooking")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_written_as_its_word(kind: str) -> None:
    """profile.json holds the word, and reads back to the same profile."""
    profile = a_profile(kind=kind, parallelism="fsdp")
    text = dump((profile,))
    assert f'"{kind}"' in text
    assert parse_profiles(text.encode(), "x") == (profile,)


@pytest.mark.parametrize(
    ("framework", "unit", "kind"),
    [
        (None, None, None),
        (None, "image", None),
        (None, "env step", "reinforcement"),
        (None, "Episodes", "reinforcement"),
        ("PyTorch 2.5", "environment_step", "reinforcement"),
        ("PyTorch 2.5", "step", "pytorch"),
        ("PyTorch Geometric 2.5", None, "graphs"),
        ("vLLM", "rollout", "llm-server"),
        ("GROMACS 2024", "episode", "simulation"),
        ("own code", "token", "other"),
    ],
)
def test_the_family_is_that_of_the_framework_or_of_what_is_counted(
    framework: str | None, unit: str | None, kind: str | None
) -> None:
    """The longest name counts; who counts steps of environments plays, whatever the framework."""
    assert family(framework, unit) == kind

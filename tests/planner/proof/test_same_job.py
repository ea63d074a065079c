"""Two jobs are refused with everything that differs; what may change is said."""

from typing import Any

import pytest
from msgspec.structs import replace

from planner.profile.model import Profile, Provenance, Source
from planner.proof.comparability import changed_by, compare
from pricing.errors import InputError
from tests.planner.proof.runs import BEFORE


def _job(**values: Any) -> Profile:
    return replace(BEFORE, job=replace(BEFORE.job, **values))


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"name": "other"}, "name"),
        ({"kind": "inference_offline"}, "kind"),
        ({"framework": "tensorflow"}, "framework"),
        ({"batch_per_gpu": 128}, "batch"),
    ],
)
def test_two_jobs_are_refused(values: dict[str, Any], what: str) -> None:
    """Each guard refuses alone, with both values, and passes where it was changed on purpose."""
    with pytest.raises(InputError) as refused:
        compare(BEFORE, _job(**values))
    (problem,) = refused.value.problems
    assert problem.startswith(f"{what}: ")
    assert f"--changed {what}" in problem
    same = compare(BEFORE, _job(**values), (what,))
    assert [(one.what, one.asked) for one in same.differs] == [(what, True)]


def test_a_name_that_is_a_file_s_tells_no_job_from_another() -> None:
    """Two logs have two names, which say nothing of the jobs in them."""
    logs = [
        replace(_job(name=name), provenance=Provenance(sources=(Source(path=f"d/{name}.csv"),)))
        for name in ("before", "after")
    ]
    assert "name" in compare(*logs).unknown


def test_all_that_differs_is_listed_at_once() -> None:
    """Two guards that fail are two problems."""
    with pytest.raises(InputError) as refused:
        compare(BEFORE, _job(framework="jax", batch_per_gpu=1))
    assert len(refused.value.problems) == 2


@pytest.mark.parametrize("field", ["dataset_gib", "parameters"])
def test_data_and_model_agree_to_a_percent(field: str) -> None:
    """140 and 140.5 GiB are one data set; 140 and 150 are two."""
    one = _job(**{field: 140.0})
    assert compare(one, _job(**{field: 140.5})).differs == ()
    with pytest.raises(InputError):
        compare(one, _job(**{field: 150.0}))


def test_what_a_run_does_not_say_is_unknown() -> None:
    """A missing value refuses nothing and is said to be unknown, never to agree."""
    same = compare(BEFORE, _job(framework=None, kind="unknown"))
    assert {"framework", "kind"} <= set(same.unknown)
    assert not {"framework", "kind"} & set(same.agreed)


def test_another_gpu_or_precision_is_said() -> None:
    """A move and mixed precision are changes that a plan proposes: said, never refused."""
    moved = replace(_job(precision="amp-fp16"), hardware=replace(BEFORE.hardware, gpu="NVIDIA L4"))
    said = {one.what: (one.before, one.after) for one in compare(BEFORE, moved).differs}
    assert said["precision"] == ("fp32", "amp-fp16")
    assert said["GPU"] == ("T4", "L4")


def test_two_names_of_one_gpu_agree() -> None:
    """`Tesla T4` and `NVIDIA T4` are one model."""
    other = replace(BEFORE, hardware=replace(BEFORE.hardware, gpu="NVIDIA T4"))
    assert "GPU" in compare(BEFORE, other).agreed


def test_actions_say_what_they_change() -> None:
    """A larger batch may change the batch; loader workers change nothing that must agree."""
    assert changed_by(("larger-batch",)) == {"batch"}
    assert changed_by(("dataloader-workers",)) == frozenset()

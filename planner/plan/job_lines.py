"""The lines of a job in plan.json, written before it is known whether the job is to share a GPU.

Where it shares one, and how sure the advice is then, is known when all jobs are planned. Both stand
in whole lines, which are replaced in what was written of the job.
"""

from typing import NamedTuple

import msgspec

from planner.models.document import to_text
from planner.plan.job import JobPlan
from planner.plan.plan import Plan


class OpenLines(NamedTuple):
    """Where lines of a job stand that may be replaced, in bytes from its beginning.

    Attributes:
        confidence: where the first line of how sure the advice is begins.
        after_confidence: where the line after the last one begins.
        placement: where the line of the GPU begins that it shares.
        after_placement: where the line after it begins.
    """

    confidence: int
    after_confidence: int
    placement: int
    after_placement: int


def job_lines(job: JobPlan) -> str:
    """Return the lines of a job as they stand in the text of a plan, no comma after them.

    Raises:
        ValueError: a number is not finite.
    """
    return to_text({"jobs": [job]}).removeprefix(_JOBS_BEGIN).removesuffix(_JOBS_END)


def text_around(plan: Plan) -> tuple[str, str]:
    """Return the text of a plan before its jobs, and after them.

    Between the two stand the lines of the jobs, `,` and a line break between them.
    """
    before, after = to_text(msgspec.structs.replace(plan, jobs=())).split('\n "jobs": []', 1)
    return f'{before}\n "jobs": [\n', f"\n ]{after}"


def open_lines(lines: bytes) -> OpenLines | None:
    """Return where the lines stand in a job's that may be replaced; None where one is not found.

    A line break stands in no JSON string, so what is found are the fields of the job.
    """
    confidence = lines.rfind(_CONFIDENCE) + 1
    placement = lines.rfind(_ALONE) + 1
    end = lines.find(_CONFIDENCE_END, confidence)
    if not (0 < confidence < end < placement):
        return None
    return OpenLines(
        confidence=confidence,
        after_confidence=end + len(_CONFIDENCE_END),
        placement=placement,
        after_placement=placement - 1 + len(_ALONE),
    )


def shared_lines(job: JobPlan) -> tuple[str, str]:
    """Return the lines that say how sure the advice is, and which GPU a job is to share."""
    sure = to_text({"jobs": [{"confidence": job.confidence}]})
    told = sure.removeprefix(f"{_JOBS_BEGIN}  {{\n").removesuffix(f"\n  }}{_JOBS_END}")
    return f"{told},\n", f'   "placement": {job.placement},\n'


def replaced(lines: bytes, places: OpenLines, by: tuple[bytes, bytes]) -> bytes:
    """Return a job's lines with those in the open places replaced."""
    confidence, placement = by
    return b"".join(
        (
            lines[: places.confidence],
            confidence,
            lines[places.after_confidence : places.placement],
            placement,
            lines[places.after_placement :],
        )
    )


_JOBS_BEGIN, _JOBS_END = '{\n "jobs": [\n', "\n ]\n}\n"
_CONFIDENCE, _CONFIDENCE_END = b'\n   "confidence": {\n', b"\n   },\n"
_ALONE = b'\n   "placement": null,\n'

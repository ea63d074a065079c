"""The steps that a loop has before it, as commands to look at."""

from collections.abc import Iterator

from gpucost.loop.loop_record import HERE, Round, read_record
from gpucost.loop.loop_steps import (
    AFTER,
    BEFORE,
    PLAN,
    RECIPE,
    LoopRequest,
    LoopStep,
    plan_step,
    profile_step,
    try_step,
    verify_step,
)

_UNKNOWN = "JOB/ID"
_HOUR_S = 3600


def steps_to_come(asked: LoopRequest) -> Iterator[str]:
    """Yield the commands of the next round; what is not known yet is written as JOB/ID.

    Raises:
        InputError: the folder holds the loop of another command.
    """
    record = read_record(asked.folder, asked.command)
    one = record.under_way
    if not record.profiled:
        yield profile_step(asked).text
    if one is None:
        number = len(record.rounds) + 1
        folder = "" if number == 1 else f"round-{number}"
        won = record.proved
        before = BEFORE if won is None else f"{won.folder}/{AFTER}".lstrip("/")
        yield plan_step(asked, before, folder).text
        one = Round(folder=folder, before=before, option=_UNKNOWN, where=HERE, settings=())
        plan, recipe = (str(asked.folder / folder / name) for name in (PLAN, RECIPE))
        yield LoopStep(words=("recipe", plan, "--option", one.option, "-o", recipe)).text
    if one.done == "chosen":
        ab = asked.ab and one.before == BEFORE
        yield try_step(asked, one, asked.budget_usd, _rent_s(asked), ab=ab).text
        if one.option == _UNKNOWN and asked.budget_usd:
            yield f"  or, for at most ${asked.budget_usd:f} in all, where the plan moves the job:"
            away = Round(
                folder=one.folder, before=one.before, option=_UNKNOWN, where="rented", settings=()
            )
            yield f"  {try_step(asked, away, asked.budget_usd, _rent_s(asked)).text}"
    yield verify_step(asked, one).text
    yield "and again from the plan, until no experiment costs less than it can save"


def _rent_s(asked: LoopRequest) -> int:
    return asked.ttl_s or _HOUR_S

"""How each action is applied: environment, launcher, and a line for each framework.

The facts lie in instructions.toml, with the versions that they are of.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.actions.tables import table

FRAMEWORKS = ("pytorch", "lightning", "transformers", "accelerate", "keras", "jax")


@dataclass(frozen=True, slots=True, kw_only=True)
class HowTo:
    """How an action is applied.

    Attributes:
        by: `launcher` where the environment or the launcher does it, `code` where the program
            changes, `machine` where another machine is rented or this one is set up.
        environment: variables to set; `{name}` stands for the setting of that name, and without
            it the variable is left out. GPUCOST_* are read by no library: they carry a figure to
            the program. The others are as PyTorch, NCCL and Hugging Face document them.
        launcher: what the launcher is told.
        frameworks: one line for each of `FRAMEWORKS` that has its own way.
        words: for everything else, or how to find out whether it worked.
    """

    by: str
    environment: Mapping[str, str] = field(default_factory=dict)
    launcher: Mapping[str, str] = field(default_factory=dict)
    frameworks: Mapping[str, str] = field(default_factory=dict)
    words: str = ""


HOW_TO: Mapping[str, HowTo] = {
    code: HowTo(**fields) for code, fields in table("instructions").items()
}

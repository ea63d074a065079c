"""The error tree: one base, the exit code on the class, every problem of an input at once.

```
GpucostError                1  unexpected failure
 ├ InputError               2  bad usage or bad input
 │  ├ UnknownGpuError       2  names the nearest known models
 │  └ NotBuiltYetError      2  an option of the contract that has no code yet
 ├ NoFeasibleOptionError    3  names the tightest constraint
 ├ RefusedError             4  refused for safety
 ├ ProviderError            5  a provider failed or answered what cannot be believed
 │  ├ MissingCredentialsError  5  names the variable to set
 │  └ UnreachableError  5  nothing answers at an address
 ├ PartialError             6  something may exist; `gpucost list` shows it
 └ InterruptedByUserError 130  interrupted between two calls; what is written knows how far it came
```
"""

from collections.abc import Iterable


class GpucostError(Exception):
    """Something gpucost can explain to a person.

    Attributes:
        problems: every problem found, each one sentence that names file, field or line, the value,
            why it matters and what to do next.
        reasons: the problems without the hint, for who knows a better one.
        exit_code: what the command line exits with.
    """

    exit_code = 1

    def __init__(
        self, problems: str | Iterable[str], exit_code: int | None = None, *, hint: str = ""
    ) -> None:
        self.reasons = (problems,) if isinstance(problems, str) else tuple(problems)
        self.problems = tuple(f"{reason} {hint}" if hint else reason for reason in self.reasons)
        if exit_code is not None:
            self.exit_code = exit_code
        super().__init__("\n".join(self.problems))


class InputError(GpucostError):
    """The input or the command line is wrong; nothing was done."""

    exit_code = 2


class UnknownGpuError(InputError):
    """A GPU model is not in the hardware table; the message names the nearest ones."""


class NotBuiltYetError(InputError):
    """The contract names this, this version does not have it."""


class NoFeasibleOptionError(GpucostError):
    """No job has an option that keeps every constraint."""

    exit_code = 3


class RefusedError(GpucostError):
    """Refused for safety: a cap, a stale price, a changed world."""

    exit_code = 4


class ProviderError(GpucostError):
    """A provider could not be reached, refused, or answered what cannot be believed."""

    exit_code = 5


class MissingCredentialsError(ProviderError):
    """No credentials of a provider were found; the message names the variable to set."""


class UnreachableError(ProviderError):
    """Nothing answers at an address; asking it for more would say the same."""


class PartialError(GpucostError):
    """Something may exist that costs money; the message names it and the command that ends it."""

    exit_code = 6


class InterruptedByUserError(GpucostError):
    """Interrupted by the user; what is written down is consistent."""

    exit_code = 130

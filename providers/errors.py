"""How a call to a provider can fail, as far as a launch has to tell the cases apart.

```
ProviderError (pricing.errors, exit 5)
 ├ NoCapacityError   nothing was made here and now; another zone, region or type may have it
 ├ QuotaError        nothing was made, and nowhere else will be: a limit of the account
 ├ ForbiddenError    nothing was made: the credentials may not do or see that
 ├ ThrottledError    nothing was made; the same call may be repeated after a while
 └ UncertainError    the answer is lost: the work may have been done, so nobody repeats it blindly
```

Every other ProviderError is a refusal: nothing was made.
"""

from pricing.errors import ProviderError


class NoCapacityError(ProviderError):
    """The place has no such machine now, or does not sell it; nothing was made."""


class QuotaError(ProviderError):
    """A limit of the account; nothing was made. The message says how to raise it."""


class ForbiddenError(ProviderError):
    """The credentials lack a right; nothing was made."""


class ThrottledError(ProviderError):
    """Too many calls; nothing was made.

    Attributes:
        wait_s: seconds after which the provider wants to be asked again.
    """

    wait_s: float = 5.0


class UncertainError(ProviderError):
    """No answer, or one that says nothing about the work: it may have been done."""

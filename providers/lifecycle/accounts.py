"""Whose account a run is in: to credentials of another one every id of it is unknown.

That proves nothing. So each run notes its account, and where the credentials at hand are of
another one, or nobody can say of which, an unknown id proves nothing.
"""

from collections.abc import Iterable, Mapping

from pricing.errors import ProviderError
from providers.interface import Deployment
from providers.lifecycle.session import Session


def account_of(session: Session) -> str:
    """Return the account of the credentials at hand; empty where the provider does not say it."""
    try:
        return session.cloud.account()
    except ProviderError:
        return ""


def why_unproved(session: Session, account: str) -> str:
    """Return why an id that the provider does not know may be there; empty: it may not.

    Args:
        session: with the provider.
        account: that the id is in, as the journal says; empty: it does not say.
    """
    if not account:
        return ""
    try:
        here = session.cloud.account()
    except ProviderError as error:
        return f"whose account the credentials are of could not be asked: {error.problems[0]}"
    return "" if here == account else _other(session, account, here)


def elsewhere(session: Session, runs: Iterable[Deployment]) -> Mapping[str, str]:
    """Return runs known to be in another account than the credentials are of, and what to say."""
    noted = {run.marks.run: run.account for run in runs if run.account}
    here = account_of(session) if noted else ""
    others = {run: account for run, account in noted.items() if here not in ("", account)}
    return {run: _other(session, account, here) for run, account in others.items()}


def _other(session: Session, account: str, here: str) -> str:
    return (
        f"it is in account {account} of {session.cloud.name}, and these credentials are of another "
        f"account, {here}; use those of {account}"
    )

"""`gpucost scan`: what runs in the user's accounts, whoever started it, and what of it is idle.

Providers are only read. What ends a thing is printed, for the user to run.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from html import escape
from urllib.parse import urlsplit

import click
from msgspec import structs

from gpucost.arguments.parameters import check_known, options, today
from gpucost.arguments.settings import load_budgets
from gpucost.cost_gate import FAILED_OVER
from gpucost.machines.state import journal_spending
from gpucost.prices.cache import load_catalog
from gpucost.views.output import (
    Output,
    Table,
    one_line,
    output_options,
    print_if_json,
    print_table,
    terminal_width,
)
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.catalog.regions import known_regions
from pricing.errors import GpucostError, InputError, MissingCredentialsError, ProviderError
from pricing.listing import counted
from pricing.money import cents, plain, show
from providers import account_scan
from providers.budgets import BudgetUse, MonthlyBudget, budget_uses
from providers.interface import MACHINE, NotQueried
from providers.provider import ANSWER_S, Request, in_each
from providers.redaction import learn, redact
from providers.registry import scanned, scanner
from templates.strangers import for_markdown, printable

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WEBHOOK_S = 10.0
_ANSWER_S = ANSWER_S + 30  # of a whole provider, whose regions may take that long
_IN_MESSAGE = 20
_OTHERS = 10
_OK = range(200, 300)
_ENDS = "Nothing was ended. The commands below the table end each where it runs."


@click.command(name="scan", epilog="Example: gpucost scan --owner-tag team --fail-over 500")
@options(
    "provider.scan region.scan owner-tag fail-over.scan webhook",
    provider={"type": click.Choice(scanned())},
)
@output_options
def command(
    providers: tuple[str, ...],
    regions: tuple[str, ...],
    owner_tag: str,
    fail_over: Decimal | None,
    webhook: str | None,
    output: Output,
) -> int:
    """Show the GPU machines, unused disks and addresses in your accounts; idle ones first.

    Whoever started them, with age, price, use over a week, owner and the command that ends each.
    Nothing is changed. A machine is idle if its GPUs, or without a reading of them its CPU, did
    nothing in any hour of the week; a machine without readings is unknown, not idle. Prices are
    list prices. Exit 5: no provider could be asked. Exit 7: --fail-over, or a budget.toml.
    """
    host = _webhook_host(webhook)
    catalog = load_catalog(today())
    check_known("--region", regions, known_regions(catalog.offers))
    budgets = load_budgets()
    scan = _scan(providers, regions, owner_tag, catalog)
    scan = structs.replace(scan, budgets=_budget_uses(budgets, scan))
    _show(scan, owner_tag, output)
    if webhook is not None:
        _post(webhook, host, _message(scan, owner_tag), output)
    return _gate(scan, fail_over, output)


def _scan(
    providers: Collection[str], regions: tuple[str, ...], owner_tag: str, catalog: Catalog
) -> account_scan.AccountScan:
    """Return what all accounts show.

    Raises:
        MissingCredentialsError: no provider has credentials; each variable is named.
        ProviderError: none could be asked.
    """
    now = datetime.now(UTC)
    request = Request(now=now, environment=os.environ, regions=regions)
    names = tuple(dict.fromkeys(providers)) or scanned()
    answers = in_each(names, partial(_ask, request), answer_s=_ANSWER_S)
    drafts = [answer for answer in answers.values() if isinstance(answer, account_scan.ScanDraft)]
    failed = {
        name: error or ProviderError(f"{name}: no answer in {_ANSWER_S:.0f} s")
        for name, error in answers.items()
        if not isinstance(error, account_scan.ScanDraft)
    }
    if not drafts:
        kinds = {type(error) for error in failed.values()}
        kind = kinds.pop() if len(kinds) == 1 else ProviderError
        raise kind(problem for error in failed.values() for problem in error.problems)
    absent = {
        name: error
        for name, error in failed.items()
        if isinstance(error, MissingCredentialsError) and name not in providers
    }
    unseen = [
        NotQueried(provider=name, kind="", region="", why=error.problems[0])
        for name, error in failed.items()
        if name not in absent
    ]
    return account_scan.assemble(
        (
            account_scan.judge(
                account_scan.priced(
                    account_scan.owned(item, owner_tag), _offer(catalog, item), now
                ),
                now,
            )
            for draft in drafts
            for item in draft.items.values()
        ),
        (*unseen, *(part for draft in drafts for part in draft.gaps)),
        (f"{name}: {error.problems[0]}" for name, error in absent.items()),
        now,
    )


def _budget_uses(
    budgets: tuple[MonthlyBudget, ...], scan: account_scan.AccountScan
) -> tuple[BudgetUse, ...]:
    """Return what of each budget is used: by the journal's launches and by what else runs."""
    if not budgets:
        return ()
    runs = journal_spending()
    running = account_scan.spending(scan.items, frozenset(run.run for run in runs), scan.as_of)
    return budget_uses(budgets, (*runs, *running), scan.as_of)


def _ask(request: Request, provider: str) -> account_scan.ScanDraft | GpucostError:
    """Return what one provider shows, or why it shows nothing."""
    try:
        draft = scanner(provider)(request)
    except GpucostError as error:
        return error
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        return ProviderError(f"its answer cannot be read ({type(error).__name__}: {error}).")
    return draft if draft.answered or not draft.gaps else ProviderError(draft.gaps[0].why)


def _offer(catalog: Catalog, item: account_scan.ScannedItem) -> Offer | None:
    """Return the price of a machine there; a price of another region is none."""
    try:
        return catalog.find(item.provider, item.type, item.region, item.purchase)
    except InputError:
        return None


def _show(scan: account_scan.AccountScan, owner_tag: str, output: Output) -> None:
    """Print the scan: a summary, a table, and the commands; other formats have all in one."""
    if not print_if_json(scan, output):
        idle = [item for item in scan.items if item.idle]
        active = [item for item in scan.items if not item.idle]
        is_table = output.format == "table"
        cut = is_table and not output.verbose and len(active) > _OTHERS
        if is_table:
            width = terminal_width()
            click.echo("\n".join(one_line(line, width) for line in _summary(scan, owner_tag)))
        shown = [*idle, *(active[:_OTHERS] if cut else active)]
        if shown:
            print_table(_table(shown, scan.as_of, output), output)
        for number, item in enumerate(idle, 1) if is_table else ():
            click.echo(printable(f"{_command(item)}  # {number}"))
        if cut:
            output.say(f"and {len(active) - _OTHERS} more that are not idle: -v, or -f csv.")
    for sentence in scan.unseen:
        output.say(f"warning: not seen: {sentence}")
    for sentence in scan.skipped:
        output.say(f"note: not asked: {sentence}")


def _command(item: account_scan.ScannedItem) -> str:
    if item.run:
        return f"gpucost down {item.run}"
    return item.command or f"# {item.provider}: end {item.id!a} on its page"


def _summary(scan: account_scan.AccountScan, owner_tag: str) -> Iterator[str]:
    """Yield the lines above the table: at most ten."""
    idle = [item for item in scan.items if item.idle]
    unmeasured = [item for item in scan.items if item.idle is None]
    if idle:
        yield f"Idle: {_amounts(idle)}: {_dollars(idle)} a month."
    else:
        yield "Idle: nothing, as far as use was measured." if scan.items else "Nothing was seen."
    if scan.items:
        all_dollars = _dollars(scan.items, at_least=scan.at_least)
        yield f"In all: {_amounts(scan.items)}: {all_dollars} a month."
    if unmeasured:
        yield f"Use unknown, not idle: {_amounts(unmeasured)}: {_dollars(unmeasured)} a month."
    by_cpu = sum(item.cpu_fraction is not None and item.gpu_fraction is None for item in idle)
    if by_cpu:
        yield f"Judged by CPU alone: {by_cpu} of the {len(idle)} idle; look before you end one."
    nameless = sum(item.owner is None for item in idle)
    if nameless:
        yield f"No tag {owner_tag!r}: {nameless} of the {len(idle)} idle."
    launched = sum(item.run is not None for item in scan.items)
    if launched:
        yield f"Started by gpucost: {launched} (`gpucost list` has them)."
    for use in scan.budgets:
        state = "OVER" if use.spent_usd > use.limit_usd else "within"
        yield (
            f"Budget {use.name}, {use.month}: ${show(use.spent_usd)} of ${show(use.limit_usd)} so "
            f"far ({state}), ${show(use.month_end_usd)} by the end of the month as it runs now."
        )
    if scan.unseen:
        yield f"Not seen: {'; '.join(sentence.partition(':')[0] for sentence in scan.unseen)}."
    if idle:
        yield _ENDS


_NAMES = {MACHINE: "GPU machine", "disk": "disk", "address": "address"}


def _amounts(items: Collection[account_scan.ScannedItem]) -> str:
    """Return how many of each kind: "40 GPU machines, 3 disks"."""
    sums = {name: sum(item.kind == kind for item in items) for kind, name in _NAMES.items()}
    return ", ".join(counted(n, name) for name, n in sums.items() if n)


def _dollars(items: Collection[account_scan.ScannedItem], *, at_least: bool = False) -> str:
    """Return what items cost a month, as far as it is known."""
    if all(item.usd_per_hour is None for item in items):
        return "an unknown amount"
    more = "at least " if at_least or any(item.at_least for item in items) else ""
    return f"{more}${show(account_scan.per_month(items))}"


_COLUMNS = ("#", "what", "where", "name", "use", "USD/month", "age", "so far", "owner")
_WHOLE = (*_COLUMNS, "idle", "why", "id", "USD/h", "at least", "by gpucost", "command")


def _table(items: Iterable[account_scan.ScannedItem], now: datetime, output: Output) -> Table:
    """Return a row an item; other formats than the table also have what ends it."""
    is_table = output.format == "table"
    rows = [_row(number, item, now, output.format) for number, item in enumerate(items, 1)]
    return Table(
        columns=_COLUMNS if is_table else _WHOLE,
        rows=tuple(row[: len(_COLUMNS)] if is_table else row for row in rows),
        right=frozenset(("USD/month", "so far", "age", "USD/h")),
        spare=("so far", "where", "owner"),
        cut=frozenset(("name", "where", "owner", "use")),
    )


def _row(number: int, item: account_scan.ScannedItem, now: datetime, form: str) -> tuple[str, ...]:
    """Return the cells of an item; amounts in CSV, which programs read, are digits alone."""
    rate, spent = item.usd_per_hour, item.usd_so_far
    more = ">" if item.at_least and form != "csv" else ""
    amount = (lambda usd: plain(cents(usd))) if form == "csv" else show
    days = None if item.started_at is None else (now - item.started_at).total_seconds() / 86_400
    hourly = "unknown" if rate is None else plain(round(rate, 6))
    return (
        str(number),
        item.type if item.kind == MACHINE else f"{item.kind} {item.type}".strip(),
        f"{item.provider} {item.region}",
        item.name or item.id,
        _use(item),
        "unknown" if rate is None else f"{more}{amount(account_scan.per_month((item,)))}",
        "?" if days is None else f"{days:.0f} d" if days >= 1 else f"{days * 24:.0f} h",
        "unknown" if spent is None else f"{more}{amount(spent)}",
        item.owner or "-",
        {True: "yes", False: "no", None: "unknown"}[item.idle],
        item.why,
        item.id,
        hourly,
        "yes" if item.at_least else "no",
        item.run or "-",
        _command(item),
    )


def _use(item: account_scan.ScannedItem) -> str:
    """Return the verdict in two words, with the mean of the week where it was measured."""
    shares = (("GPU", item.gpu_fraction), ("CPU", item.cpu_fraction))
    read = next((f" {name} {share:.1%}" for name, share in shares if share is not None), "")
    if item.idle and not read:
        return item.state if item.kind == MACHINE else "unattached"
    return {True: "idle", False: "in use", None: "unknown"}[item.idle] + read


def _gate(scan: account_scan.AccountScan, limit: Decimal | None, output: Output) -> int:
    """Return the exit code; what trips is said, quiet or not."""
    over = [use for use in scan.budgets if use.spent_usd > use.limit_usd]
    for use in over:
        spent, limit_usd = show(use.spent_usd), show(use.limit_usd)
        output.insist(
            f"gpucost: budget {use.name}: ${spent} in {use.month}, above its ${limit_usd}."
        )
    if limit is None or scan.idle_usd_per_month <= limit:
        return FAILED_OVER if over else 0
    amount = f"${show(scan.idle_usd_per_month)} a month"
    output.insist(f"gpucost: what is idle costs {amount}, above --fail-over ${show(limit)}.")
    return FAILED_OVER


def _webhook_host(url: str | None) -> str:
    """Return the host of a webhook; its path is a secret from here on.

    Raises:
        InputError: it is not an https address.
    """
    if url is None:
        return ""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise InputError("--webhook: not an address; give https://HOST/PATH.") from None
    learn(parts.path, parts.query, parts.password)
    if not host or parts.scheme not in ("https", "http"):
        raise InputError("--webhook: not an address; give https://HOST/PATH.")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise InputError(f"--webhook: {host} must be reached by https; this is http.")
    return host


def _post(url: str, host: str, lines: Iterable[str], output: Output) -> None:
    """Send lines; a failure is said, and changes nothing else."""
    import urllib3  # noqa: PLC0415 - only where something is sent

    text = "\n".join(for_markdown([escape(redact(line), quote=False) for line in lines]))
    try:
        pool = urllib3.PoolManager(timeout=_WEBHOOK_S, retries=False)
        status = pool.request("POST", url, json={"text": text}, redirect=False).status
        fault = "" if status in _OK else f"it answered HTTP {status}"
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        fault = type(error).__name__
    if fault:
        output.insist(f"warning: the webhook at {host} did not take the message: {fault}.")


def _message(scan: account_scan.AccountScan, owner_tag: str) -> Iterator[str]:
    """Yield the lines of a message: the summary and the dearest idle things."""
    idle = [item for item in scan.items if item.idle]
    yield from (line for line in _summary(scan, owner_tag) if line != _ENDS)
    for item in idle[:_IN_MESSAGE]:
        title = f"{item.type or item.kind} {item.name or item.id}"
        where = f"{item.provider} {item.region}, {item.owner or 'no owner'}"
        yield f"- {title} ({where}): {_dollars((item,))} a month, {item.why}"
    if len(idle) > _IN_MESSAGE:
        yield f"- and {len(idle) - _IN_MESSAGE} more"

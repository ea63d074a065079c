"""The documents that gpucost writes, one row each: what writes it, and the class it is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Literal

from gpucost.schemas.from_fields import schema_of
from planner.models.json_schema import Schema

Form = Literal["one", "list", "line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDocument:
    """A document that gpucost writes.

    Attributes:
        name: as in its `schema`, and in docs/reference/schemas.
        written: what writes it.
        source: the class whose fields it has, `module:Class`; imported where it is asked for.
        form: an object, an array of objects, or an object a line.
        tagged: whether `schema` stands before the fields, without being one of them.
    """

    name: str
    written: str
    source: str
    form: Form = "one"
    tagged: bool = False

    @property
    def schema(self) -> Schema:
        """Its JSON Schema; that of each line where it is lines."""
        module, _, name = self.source.partition(":")
        made = getattr(import_module(module), name)
        if not isinstance(made, type):  # a profile is read, too: its own declared fields say how
            own: Schema = made()
            return own
        return schema_of(self.name, made, many=self.form == "list", tagged=self.tagged)


_DOCUMENTS = "planner.plan.plan"
_QUOTES, _RUNS = "gpucost.files.quote_values", "gpucost.views.runs"
_SMALL = "gpucost.schemas.small_documents"
_ANSWERS = "gpucost.agents.answers"
_LINES = "gpucost.schemas.capture_lines"

_ROWS = (
    ("profile", "profile.json: `profile`, `import`, `run`", "planner.profile.schema:schema"),
    ("plan", "plan.json: `plan -o`, `plan -f json`, `demo`, `fleet`", f"{_DOCUMENTS}:Plan"),
    ("recipe", "recipe.json: `recipe`", "planner.documents.recipe:RecipeDocument"),
    ("quote", "`quote -f json`; several in an array", f"{_QUOTES}:QuoteDocument"),
    ("ownership", "`quote own -f json`", f"{_QUOTES}:OwnershipDocument"),
    ("diagnosis", "`diagnose -f json`", f"{_SMALL}:DiagnosisDocument"),
    (
        "verification",
        "`verify -o`, `verify -f json`",
        "planner.proof.verify:Verification",
    ),
    ("plan-change", "`diff -f json`, `fleet --weekly`", "planner.documents.plan_change:PlanChange"),
    (
        "reconciliation",
        "`reconcile -f json`",
        "planner.bills.reconcile:Reconciliation",
    ),
    ("bill", "`bill -f json`", "planner.bills.review:Review"),
    ("capacity", "`capacity -f json`", "planner.capacity.capacity:CapacityDocument"),
    ("preview", "`provision --dry-run -f json`", "gpucost.views.launch:PreviewDocument"),
    ("run", "`show`, `provision`, `extend`, `-f json`", f"{_RUNS}:DeploymentDocument"),
    ("runs", "`list -f json`", f"{_RUNS}:DeploymentListDocument"),
    ("loop", "loop.json: `loop`, `loop -f json`", "gpucost.loop.loop_record:LoopRecord"),
    ("accuracy", "`accuracy -f json`", "planner.documents.accuracy:AccuracyDocument"),
    ("own-accuracy", "`accuracy --mine -f json`", "planner.proof.outcome:OwnRecord"),
    ("batch-search", "`run --find-batch -o`", "gpucost.profiling.run_request:BatchSearch"),
    ("prices-check", "`prices check -f json`", "gpucost.prices.checks:CheckedPrices"),
    ("explanation", "`explain -f json`", f"{_SMALL}:ExplainedCode"),
    ("agent-prices", "`prices` of `mcp`", f"{_ANSWERS}:AgentPrices"),
    ("agent-diagnosis", "`diagnose` of `mcp`", f"{_ANSWERS}:AgentDiagnosis"),
    ("agent-plan", "`plan` of `mcp`", f"{_ANSWERS}:AgentPlan"),
    ("agent-runs", "`list` of `mcp`", f"{_ANSWERS}:AgentRuns"),
    ("agent-end", "`down` of `mcp`", f"{_ANSWERS}:AgentEnd"),
    ("agent-provision", "`provision` of `mcp`", f"{_ANSWERS}:provision_schema"),
)
_LISTS = (
    ("prices", "`prices -f json`", "gpucost.commands.money.prices:ListedOffer"),
    ("price-history", "`prices history -f json`", "gpucost.prices.checks:PriceSeries"),
    ("price-update", "`prices update -f json`", "gpucost.prices.update:UpdatedPrices"),
    ("installation", "`doctor -f json`", f"{_SMALL}:InstallationCheck"),
    ("reaped", "`reap -f json`, `watch -f json`", f"{_SMALL}:ReapedRun"),
)
_LINE_BY_LINE = (
    ("steps", "profile.steps.jsonl: `profile`, `run`", "gpucost.profiling.run_files:StepLine"),
    ("capture", "profile.capture.jsonl: `profile`, while it measures", f"{_LINES}:schema"),
    ("agent-launch", "agent-launches.jsonl: `mcp`", "gpucost.agents.budget:AgentCap"),
)

DOCUMENTS: Mapping[str, WrittenDocument] = MappingProxyType(
    {
        one.name: one
        for one in (
            *(WrittenDocument(name=n, written=w, source=s) for n, w, s in _ROWS),
            *(WrittenDocument(name=n, written=w, source=s, form="list") for n, w, s in _LISTS),
            *(
                WrittenDocument(name=n, written=w, source=s, form="line")
                for n, w, s in _LINE_BY_LINE
            ),
            WrittenDocument(
                name="outcome",
                written="outcomes.jsonl: `verify --plan`",
                source="planner.models.track_record:PastPrediction",
                form="line",
                tagged=True,
            ),
        )
    }
)
"""By name."""

"""The values of a job as JSON: before its launch, and how it ended."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStepDocument:
    """A step that follows the launch.

    Attributes:
        step: its name, which `gpucost logs --step` takes.
        does: in words.
        what: of this job it takes.
    """

    step: str
    does: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPreviewDocument:
    """What follows a launch, over SSH.

    Attributes:
        steps: in order.
        collect: what comes back.
        notes: what must be known before saying yes.
    """

    steps: tuple[JobStepDocument, ...]
    collect: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEndDocument:
    """How a job ended.

    Attributes:
        exit_status: of its command.
        collected: where what came back lies here.
        profile: the machine's own, measured meanwhile; None where nothing was measured.
    """

    exit_status: int
    collected: tuple[str, ...]
    profile: str | None

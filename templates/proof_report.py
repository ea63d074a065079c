"""Fills the report of `gpucost verify`: two runs, the plan and the invoice side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pricing.money import show
from templates.render import environment

if TYPE_CHECKING:
    from planner.proof.verify import VerificationDocument


def render_proof(document: VerificationDocument) -> str:
    """Return the report of a verification, as markdown to attach to a pull request."""
    return environment().get_template("proof.md.j2").render(v=document, show=show)

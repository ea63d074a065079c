"""A launch from its preview to machines that are ready."""

import contextlib
from datetime import UTC, datetime
from pathlib import Path

from gpucost.files.writing import state_folder
from gpucost.jobs.driving import drive, preview_job
from gpucost.jobs.request import JobRequest, job_folder
from gpucost.launch.choice import LaunchChoice
from gpucost.launch.options import LaunchOptions, check_self_destroy
from gpucost.launch.preview import LivePrices, build_spec, preview, read_live, with_key
from gpucost.machines.state import CLOCK, login_to, open_journal, session_with
from gpucost.views.launch import nothing_made, show_preview
from gpucost.views.output import Output
from gpucost.views.runs import show_run
from pricing.errors import GpucostError
from providers.interface import LEAST_SKEW_S, OWN, Cloud, Deployment, LaunchSpec, Preview
from providers.journal.journal import Journal, JournalError
from providers.lifecycle.launch import launch
from providers.lifecycle.session import skew_told
from providers.registry import cloud_class
from providers.ssh.connection import Login, drop_key, make_key

_KEY_TO_COME = "ssh-ed25519 AAAA made-at-the-launch"
"""Stands in previews for the public key of the run, which is made once they are confirmed."""


def dry_run(
    choice: LaunchChoice, options: LaunchOptions, job: JobRequest | None, output: Output
) -> None:
    """Print what would be done; what would refuse is a warning."""
    problems: list[str] = []
    try:
        check_self_destroy(choice.provider, options)
    except GpucostError as error:
        problems += error.problems
    spec = build_spec(choice, options, datetime.now(UTC), None)
    launch = preview(cloud_class(choice.provider), _with_key_to_come(spec), (), None, options)
    show_preview(launch, None if job is None else preview_job(job), output, dry=True)
    refusals = (*problems, *launch.refusals)
    for refusal in refusals:
        output.say(f"warning: a launch would be refused: {refusal}")
    output.say(nothing_made(launch, refused=bool(refusals)))


def previewed(cloud: Cloud, choice: LaunchChoice, options: LaunchOptions) -> Preview:
    """Return what the launch would do and cost, at live prices and as the provider can do it."""
    live = read_live(choice.offers, choice.region) if choice.offers else None
    spec, notes = _checked(cloud, choice, options, live)
    if abs(cloud.skew_s) >= LEAST_SKEW_S:  # its answers told that it is later or earlier there
        spec, notes = _checked(cloud, choice, options, live)
        notes = (*notes, *skew_told(cloud.name, cloud.skew_s))
    return preview(cloud, spec, notes, live, options)


def _checked(
    cloud: Cloud, choice: LaunchChoice, options: LaunchOptions, live: LivePrices | None
) -> tuple[LaunchSpec, tuple[str, ...]]:
    """Return the launch with a deadline by the provider's clock, as far as that is known."""
    spec = build_spec(choice, options, CLOCK.at(cloud.skew_s), live)
    return cloud.check(_with_key_to_come(spec))


def _with_key_to_come(spec: LaunchSpec) -> LaunchSpec:
    return with_key(spec, _KEY_TO_COME) if _has_key(spec) else spec


def _has_key(spec: LaunchSpec) -> bool:
    """Return whether the run gets a key of its own: nobody logs in to the nodes of a pool."""
    return spec.provider != OWN and spec.pool is None


def launch_confirmed(cloud: Cloud, spec: LaunchSpec, output: Output, *, wait: bool) -> None:
    """Launch what was confirmed, and print the run; a run that came to nothing keeps no key."""
    with open_journal() as journal:
        done = _launched(cloud, spec, journal, output, wait=wait)
        show_run(done, journal.events(spec.marks.run), output, CLOCK.at(cloud.skew_s))


def launch_job(cloud: Cloud, spec: LaunchSpec, job: JobRequest, output: Output) -> None:
    """Launch what was confirmed, run its job there, and end it; see `gpucost.jobs.driving`."""
    folder = job_folder(spec.marks.run)
    folder.keep(job)
    with open_journal() as journal:
        try:
            done = _launched(cloud, spec, journal, output, wait=True)
        except GpucostError:
            folder.drop()
            raise
        output.say(f"{spec.marks.run} is ready")
        drive(done, journal, output)


def _launched(
    cloud: Cloud, spec: LaunchSpec, journal: Journal, output: Output, *, wait: bool
) -> Deployment:
    state, run = state_folder(), spec.marks.run
    session = session_with(cloud, journal, output)
    try:
        login = open_login(spec) if wait and spec.pool is None else None
        return launch(session, spec, login, lambda spec: _keyed(spec, state))
    except GpucostError:
        with contextlib.suppress(JournalError):
            deployment = journal.deployment(run)
            if deployment is None or deployment.state == "ended":
                drop_key(state, run)
        raise


def _keyed(spec: LaunchSpec, state: Path) -> LaunchSpec:
    return with_key(spec, make_key(state, spec.marks.run)) if _has_key(spec) else spec


def open_login(spec: LaunchSpec) -> Login:
    """Return the way into the machines of a launch, with the end token where they need one."""
    host, run = spec.places[0].host, spec.marks.run
    return login_to(spec.provider, run, state_folder(), host, self_destroy=spec.self_destroy)

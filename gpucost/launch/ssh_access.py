"""How gpucost gets into the machines of a run."""

from pathlib import Path

from providers.interface import OWN, Deployment
from providers.registry import CLOUDS
from providers.ssh.connection import Door, own_door
from providers.ssh.keys import key_file, known_hosts


def new_door(provider: str, run: str, state: Path, host: str = "") -> Door:
    """The way into machines of a run: its own key, or for the user's own machine the user's."""
    if provider == OWN:
        return own_door(host)
    return Door(
        user=CLOUDS[provider].user,
        key=key_file(state, run),
        known_hosts=known_hosts(state, run),
    )


def door_of(run: Deployment, state: Path) -> Door:
    """The way into the machines of a run of the journal."""
    host = next((machine.id for machine in run.machines), "")
    return new_door(run.provider, run.marks.run, state, host)

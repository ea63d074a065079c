"""The SSH key pair of a run: made before the run, kept for its owner alone, gone with it."""

import os
import shutil
from pathlib import Path

from providers.private_files import open_private, private_folder

_FOLDER = "keys"
_PRIVATE = "id_ed25519"
_KNOWN_HOSTS = "known_hosts"


def make_key(state: Path, run: str) -> str:
    """Make the key pair of a run and return its public half in OpenSSH form."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - heavy, only here
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - the same

    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    folder = state / _FOLDER / run
    for one in (state, folder.parent, folder):
        private_folder(one)
    os.close(open_private(folder / _KNOWN_HOSTS, os.O_RDWR))
    handle = open_private(folder / _PRIVATE, os.O_WRONLY | os.O_TRUNC)
    with os.fdopen(handle, "wb") as stream:
        stream.write(private)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return f"{public.decode()} gpucost-{run}"


def key_file(state: Path, run: str) -> Path:
    """Return where the private half is kept."""
    return state / _FOLDER / run / _PRIVATE


def known_hosts(state: Path, run: str) -> Path:
    """Return where the host keys of the run's machines are kept, as they were first seen."""
    return state / _FOLDER / run / _KNOWN_HOSTS


def drop_key(state: Path, run: str) -> None:
    """Remove the key pair of a run; no error where there is none."""
    shutil.rmtree(state / _FOLDER / run, ignore_errors=True)

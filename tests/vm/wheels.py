"""What a machine without a network installs gpucost from: uv, and the wheels that gpucost needs.

gpucost's own wheel is not among them: the job brings it, as anywhere.
"""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.conftest import ROOT

WHERE = "/srv/wheels"
"""Where the machine finds it."""

MOUNTED = (
    f"mkdir -p {WHERE} /etc/uv",
    f"mount -o ro /dev/vdd {WHERE}",
    f"ln -sf {WHERE}/uv /usr/local/bin/uv",
    f"printf 'no-index = true\\nfind-links = [\"{WHERE}\"]\\n' >/etc/uv/uv.toml",
)
"""Commands that put it there: no script of ours is changed for it."""


def build_wheels(cache: Path) -> Path:
    """Return an ISO image of them, from the cache where it is there; else PyPI is asked."""
    lock = ROOT / "templates" / "jobs" / "requirements.txt"
    name = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    image, folder = cache / f"wheels-{name}.iso", cache / f"wheels-{name}"
    if image.exists():
        return image
    folder.mkdir(exist_ok=True)
    # Debian 12 has this Python and glibc 2.36.
    kinds = (
        "--python-version=3.11",
        *(f"--platform=manylinux_2_{n}_x86_64" for n in range(36, 4, -1)),
    )
    kinds = (*kinds, "--platform=manylinux2014_x86_64", "--only-binary=:all:")
    pip = (sys.executable, "-m", "pip", "download", "-qq", f"--dest={folder}", *kinds)
    subprocess.run((*pip, "--require-hashes", f"--requirement={lock}"), check=True)
    subprocess.run((*pip, "uv"), check=True)
    (packed,) = folder.glob("uv-*.whl")
    with zipfile.ZipFile(packed) as wheel:
        (program,) = [one for one in wheel.namelist() if one.endswith("/scripts/uv")]
        (folder / "uv").write_bytes(wheel.read(program))
    (folder / "uv").chmod(0o755)
    packed.unlink()
    made = (
        "genisoimage",
        "-quiet",
        "-rock",
        "-joliet-long",
        "-output",
        f"{image}.new",
        str(folder),
    )
    subprocess.run(made, check=True, stderr=subprocess.DEVNULL)
    Path(f"{image}.new").rename(image)
    shutil.rmtree(folder)
    return image

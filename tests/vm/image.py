"""The disk of the virtual machine: Debian with cloud-init and sshd, built once into a cache.

The folder is `GPUCOST_VM_CACHE`, else `~/.cache/gpucost-vm`. Building takes two minutes, root,
Debian's archive, and `apt-get install qemu-system-x86 mmdebstrap genisoimage`.
"""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.bootstrap.box import SHIMS

PACKAGES = (
    "linux-image-cloud-amd64",
    "cloud-init",
    "openssh-server",
    "systemd-sysv",
    "udev",
    "dbus",
    "iproute2",
    "ifupdown",
    "isc-dhcp-client",
    "python3",
    "curl",
    "ca-certificates",
    "rsync",
    "procps",
    "mount",
    "e2fsprogs",
    "kmod",
    "netbase",
    "bsdextrautils",
    "mdadm",
)
TOOLS = ("qemu-system-x86_64", "mmdebstrap", "genisoimage", "mke2fs", "ssh-keygen")
_CONFIG = """datasource_list: [ NoCloud ]
disable_root: false
ssh_genkeytypes: [ ed25519 ]
manage_etc_hosts: true
"""
_SIZE = "2000M"


@dataclass(frozen=True)
class Image:
    """What a machine is started from.

    Attributes:
        disk: file system with everything but user data.
        kernel, initrd: of it.
        key: private key that root of the machine takes.
    """

    disk: Path
    kernel: Path
    initrd: Path
    key: Path


def missing_tools() -> list[str]:
    """The programs that are not installed here."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def build_image() -> Image:
    """Return the image, from the cache where this version of it is there."""
    default = Path.home() / ".cache" / "gpucost-vm"
    cache = Path(os.environ.get("GPUCOST_VM_CACHE", default))
    cache.mkdir(parents=True, exist_ok=True)
    image = Image(
        disk=cache / f"disk-{_version()}.ext4",
        kernel=cache / "vmlinuz",
        initrd=cache / "initrd",
        key=cache / "key",
    )
    if not image.disk.exists():
        _build(cache, image)
    return image


def _version() -> str:
    told = [*PACKAGES, _CONFIG, _SIZE, *(one.read_text() for one in sorted(SHIMS.iterdir()))]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]


def _build(cache: Path, image: Image) -> None:
    root, packed = (
        cache / "root",
        cache / f"{hashlib.sha256(','.join(PACKAGES).encode()).hexdigest()[:12]}.tar",
    )
    if not packed.exists():
        asked = [
            "mmdebstrap",
            "--format=tar",
            "--variant=minbase",
            f"--include={','.join(PACKAGES)}",
        ]
        _run([*asked, "bookworm", f"{packed}.new"])
        Path(f"{packed}.new").rename(packed)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    _run(["tar", "-C", str(root), "-xf", str(packed)])
    if not image.key.exists():
        _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(image.key)])
    ssh = root / "root" / ".ssh"
    ssh.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(image.key.with_suffix(".pub"), ssh / "authorized_keys")
    for shim in SHIMS.iterdir():
        shutil.copy(shim, root / "usr/local/bin" / shim.name)
    (root / "etc/cloud/cloud.cfg.d/90-vm.cfg").write_text(_CONFIG)
    (root / "etc/fstab").write_text("/dev/vda / ext4 defaults 0 1\n")
    (root / "etc/machine-id").write_text("")
    for unit in ("apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_reap.service"):
        (root / "etc/systemd/system" / unit).symlink_to("/dev/null")
    for name, kept in (("vmlinuz", image.kernel), ("initrd.img", image.initrd)):
        (found,) = (root / "boot").glob(f"{name}-*")
        shutil.copy(found, kept)
    _run(["mke2fs", "-q", "-t", "ext4", "-d", str(root), f"{image.disk}.new", _SIZE])
    Path(f"{image.disk}.new").rename(image.disk)
    shutil.rmtree(root)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

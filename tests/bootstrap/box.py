"""A machine in a folder: its root, its scripts, small tools in place of its own, a driven clock."""

import gzip
import os
import shutil
import subprocess
from email import message_from_string
from email.message import Message
from pathlib import Path

import yaml

from templates.bootstrap_files import MachineBootstrap, render_bootstrap

NOW_S = 1_795_263_300
"""When the machine is made: eight hours before the deadline of `a_machine`."""
BOOT_S = 40
"""How long after that it boots."""

_TOOLS = {
    "systemctl": 'echo "systemctl $*" >>"$GPUCOST_ROOT/calls"',
    # The matrix as in public captures of rocm-smi on machines with four and eight GPUs.
    # Caps as in a public capture of `rocm-smi -a`, and as ROCm's rocm_smi.py prints them.
    "rocm-smi": 'case "$*" in *--showtopotype*) cat "$GPUCOST_ROOT/links" ;;\n'
    '*--setpoweroverdrive*) echo "rocm-smi $*" >>"$GPUCOST_ROOT/calls"\n'
    '[ -e "$GPUCOST_ROOT/gpu/stuck-power" ] || echo "$2" >"$GPUCOST_ROOT/cap" ;;\n'
    '*--showmaxpower*) echo "=== Power Cap ==="; cap="$(cat "$GPUCOST_ROOT/cap" || echo 750)"\n'
    "for i in $(seq 0 $((GPUS - 1))); do\n"
    'printf "GPU[%d]\\t\\t: Max Graphics Package Power (W): %s.0\\n" "$i" "$cap"; done ;;\n'
    '*) for i in $(seq 1 "$GPUS"); do echo "card$i,0x1"; done ;; esac',
    "lsblk": 'case "$*" in *NAME,TYPE,RO*) printf "%b" "$DISKS" ;;\n'
    "*MOUNTPOINT*) ;; *) echo x ;; esac",
    "mkfs.ext4": 'echo "mkfs $*" >>"$GPUCOST_ROOT/calls"\n'
    'for disk in "$@"; do :; done; echo "$disk" >"$GPUCOST_ROOT/labelled"',
    "blkid": 'cat "$GPUCOST_ROOT/labelled" 2>/dev/null || exit 2',
    "mount": 'echo "mount $*" >>"$GPUCOST_ROOT/calls"; touch "$GPUCOST_ROOT/mounted"',
    "mountpoint": '[ -e "$GPUCOST_ROOT/mounted" ]',
    "mdadm": 'echo "mdadm $*" >>"$GPUCOST_ROOT/calls"',
    "torchrun": 'echo "torchrun $*" >>"$GPUCOST_ROOT/calls"',
    "pgrep": 'cat "$GPUCOST_ROOT/transfers" 2>/dev/null || exit 1',
    "wall": 'echo "wall at $(date +%s): $*" >>"$GPUCOST_ROOT/calls"',
    "date": 'if [ "$*" != +%s ]; then exec /bin/date "$@"; fi\n'
    'read -r now <"$GPUCOST_ROOT/clock"; echo "$now"',
    # A second of sleep is a second of the clock and of the kernel's.
    "sleep": 'read -r now <"$GPUCOST_ROOT/clock"; read -r up _ <"$GPUCOST_ROOT/proc/uptime"\n'
    'echo $((now + ${1%.*})) >"$GPUCOST_ROOT/clock"\n'
    'echo "$((${up%.*} + ${1%.*})).00 0.00" >"$GPUCOST_ROOT/proc/uptime"\n'
    'if [ $((${up%.*} + ${1%.*})) -ge "$UNTIL_S" ]; then kill "$PPID"; fi',
}

SHIMS = Path(__file__).parent / "shims"
"""Stand-ins for the tools of GPUs, which keep what was set."""

Ran = subprocess.CompletedProcess[str]


def parts(document: str) -> dict[str, str]:
    """The parts of a bootstrap by type, such as "cloud-boothook"."""
    message = message_from_string(document)
    return dict(_part(part) for part in message.walk() if not part.is_multipart())


def _part(part: Message) -> tuple[str, str]:
    """Type and text; a compressed part says its type in its first line."""
    if part.get_content_subtype() != "gzip":
        return part.get_content_subtype(), str(part.get_payload())
    text = gzip.decompress(part.get_payload(decode=True)).decode()  # type: ignore[arg-type]
    kind = text.removeprefix("#").partition("\n")[0]
    return kind, text.removeprefix("#cloud-boothook\n")


class Box:
    """A machine's root folder, its scripts, and what they called."""

    def __init__(self, root: Path, machine: MachineBootstrap, *, curl: str = "echo 4711") -> None:
        self.root = root
        self.parts = parts(render_bootstrap(machine))
        (root / "bin").mkdir(parents=True)
        note = 'echo "curl $*" >>"$GPUCOST_ROOT/calls"'
        for name, text in {**_TOOLS, "curl": f"{note}\n{curl}"}.items():
            self.tool(name, text)
        for shim in SHIMS.iterdir():
            shutil.copy(shim, root / "bin" / shim.name)
        self.write("proc/sys/kernel/random/boot_id", "boot-1\n")
        self.set_clock(NOW_S + BOOT_S + 20, up_s=20)
        if "cloud-boothook" in self.parts:
            ran = self.boothook()
            assert ran.returncode == 0, ran.stderr
        for file in yaml.safe_load(self.parts["cloud-config"])["write_files"]:
            path = self.write(file["path"].lstrip("/"), file["content"])
            path.chmod(int(file["permissions"], 8))

    def tool(self, name: str, text: str) -> None:
        """Put a tool on the machine's path."""
        self.write(f"bin/{name}", f"#!/bin/sh\n{text}\n").chmod(0o755)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the machine."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name: str) -> str:
        """What a file of the machine says; empty where there is none."""
        path = self.root / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def set_clock(self, now_s: int, *, up_s: int) -> None:
        """Set the time of day and the seconds since boot."""
        self.write("clock", f"{now_s}\n")
        self.write("proc/uptime", f"{up_s}.00 0.00\n")

    def boothook(self) -> Ran:
        """What cloud-init runs at every boot before anything else."""
        hook = self.write("boothook", self.parts["cloud-boothook"])
        hook.chmod(0o755)
        return self._run([str(hook)])

    def run(self, script: str, *arguments: str, **settings: str) -> Ran:
        """Run a script of the machine."""
        return self._run([f"{self.root}/opt/gpucost/{script}", *arguments], **settings)

    def watch(self, until_s: int) -> Ran:
        """Let the watch run until the machine ends, or for so many seconds since boot."""
        return self.run("deadline.sh", UNTIL_S=str(until_s))

    def reboot(self, down_s: int = 30) -> None:
        """Another boot of the same machine."""
        self.write("proc/sys/kernel/random/boot_id", f"boot-{self.now_s}\n")
        self.set_clock(self.now_s + down_s, up_s=20)
        (self.root / "run/gpucost/beat").unlink(missing_ok=True)
        self.boothook()

    def _run(self, command: list[str], **settings: str) -> Ran:
        environment = {
            "PATH": f"{self.root}/bin:{os.environ['PATH']}",
            "GPUCOST_ROOT": str(self.root),
            "GPU_STATE": str(self.root / "gpu"),
            "GPU_CALLS": str(self.root / "calls"),
            "GPUCOST_TRIES": "2",
            "GPUCOST_PAUSE_S": "0",
            "GPUS": "1",
            "DISKS": "/dev/vdc disk 0\\n",
            "UNTIL_S": "99999999",
            **settings,
        }
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    @property
    def now_s(self) -> int:
        """The machine's time of day."""
        return int(self.read("clock"))

    @property
    def up_s(self) -> int:
        """Seconds since its boot."""
        return int(self.read("proc/uptime").partition(".")[0])

    @property
    def status(self) -> str:
        """What the machine says of itself."""
        return self.read("var/lib/gpucost/status").strip()

    @property
    def calls(self) -> str:
        """What was called, in order."""
        return self.read("calls")

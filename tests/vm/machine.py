"""A virtual machine: started with user data, reached over SSH, and watched until it is off."""

import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.vm.image import Image
from tests.vm.metadata import ADDRESS, Metadata

_RELAY = Path(__file__).with_name("relay.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Disks:
    """Disks of a machine beside that of its image.

    Attributes:
        scratch_bytes: size of the empty one, which becomes /scratch.
        brought: an ISO image that it finds as /dev/vdd; None: none.
    """

    scratch_bytes: int = 256 * 2**20
    brought: Path | None = None


class VirtualMachine:
    """A machine whose disk forgets everything once it is off.

    Args:
        image: what it starts from.
        folder: of its files here.
        user_data, vendor_data: for cloud-init.
        disks: beside the image's.
    """

    def __init__(
        self,
        image: Image,
        folder: Path,
        user_data: str,
        *,
        vendor_data: str = "",
        disks: Disks | None = None,
    ) -> None:
        self.image, self.folder = image, folder
        self._disks = disks or Disks()
        self._followers: list[subprocess.Popen[bytes]] = []
        self.metadata = Metadata()
        self.metadata.start()
        self.port = _free_port()
        self.console = folder / "console.log"
        self.started_s = time.time()
        with self.console.open("wb") as console:
            self.process = subprocess.Popen(
                self._command(self._seed(user_data, vendor_data)),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
            )

    def _seed(self, user_data: str, vendor_data: str) -> Path:
        """The disk that cloud-init's NoCloud takes user data from."""
        seed = self.folder / "seed"
        seed.mkdir()
        (seed / "user-data").write_text(user_data)
        (seed / "meta-data").write_text("instance-id: i-1\nlocal-hostname: vm\n")
        (seed / "vendor-data").write_text(vendor_data)
        disk = self.folder / "seed.iso"
        made = ["genisoimage", "-quiet", "-volid", "cidata", "-joliet", "-rock", "-output"]
        subprocess.run([*made, str(disk), *map(str, seed.iterdir())], check=True)
        return disk

    def _command(self, seed: Path) -> list[str]:
        scratch = self.folder / "scratch.img"
        with scratch.open("wb") as stream:
            stream.truncate(self._disks.scratch_bytes)
        relay = f"{sys.executable} {_RELAY} {self.metadata.port}"
        network = (
            f"user,id=net,restrict=on,net=169.254.169.0/24,host=169.254.169.2,"
            f"dhcpstart=169.254.169.15,hostfwd=tcp:127.0.0.1:{self.port}-:22,"
            f"guestfwd=tcp:{ADDRESS}:80-cmd:{relay}"
        )
        disks = [
            f"file={self.image.disk},if=virtio,format=raw,snapshot=on",
            f"file={scratch},if=virtio,format=raw",
            f"file={seed},if=virtio,format=raw,readonly=on",
        ]
        if self._disks.brought is not None:
            disks.append(f"file={self._disks.brought},if=virtio,format=raw,readonly=on")
        options = {
            "-accel": "tcg,thread=multi",
            "-cpu": "max",
            "-smp": "2",
            "-m": "1024",
            "-display": "none",
            "-serial": "stdio",
            "-rtc": "base=utc",
            "-kernel": str(self.image.kernel),
            "-initrd": str(self.image.initrd),
            "-append": "root=/dev/vda rw console=ttyS0 quiet",
            "-netdev": network,
            "-device": "virtio-net-pci,netdev=net",
        }
        plain = [word for pair in options.items() for word in pair]
        return ["qemu-system-x86_64", *plain, *(w for disk in disks for w in ("-drive", disk))]

    def ssh(self, command: str, *, given: str = "", limit_s: float = 60) -> tuple[int, str]:
        """Exit status and output of a command as root; 255 where it cannot be reached."""
        asked = self._asked(command)
        try:
            ran = subprocess.run(
                asked, input=given, capture_output=True, text=True, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            return 255, f"no answer in {limit_s} s"
        return ran.returncode, ran.stdout + ran.stderr

    def _asked(self, command: str) -> list[str]:
        settings = ("LogLevel=ERROR", "StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null")
        words = ["ssh", "-i", str(self.image.key), "-p", str(self.port), "-o", "BatchMode=yes"]
        words += [word for one in (*settings, "ConnectTimeout=10") for word in ("-o", one)]
        return [*words, "root@127.0.0.1", command]

    def follow(self, path: str) -> Path:
        """A file here that gets what a file there gets, until the machine goes off."""
        here = self.folder / Path(path).name
        with here.open("wb") as stream:
            told = self._asked(f"tail -n 0 -F {path}")
            follower = subprocess.Popen(
                told, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
            )
        self._followers.append(follower)
        return here

    def must(self, command: str, *, given: str = "") -> str:
        """Output of a command that succeeds; without acceleration a process takes long to start."""
        code, text = self.ssh(command, given=given, limit_s=300)
        assert code == 0, f"{command}: {code}: {text}"
        return text.strip()

    def wait_for(self, command: str, limit_s: float) -> str:
        """Output of a command once it succeeds."""
        last, until_s = "", time.time() + limit_s
        while time.time() < until_s:
            assert self.process.poll() is None, f"it went off: {self.tail()}"
            code, last = self.ssh(command)
            if code == 0:
                return last.strip()
            time.sleep(3)
        raise AssertionError(f"{command}: not in {limit_s} s: {last}\n{self.tail()}")

    def wait_off(self, limit_s: float) -> None:
        """Return once the machine has powered itself off."""
        self.process.wait(timeout=limit_s)
        for follower in self._followers:
            follower.wait(timeout=60)

    def tail(self) -> str:
        """The last lines of its console."""
        return self.console.read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        """Take its power away."""
        self.process.kill()
        self.process.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])

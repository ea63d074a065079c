"""GPUs of a machine in a folder: what they do over time, told as NVIDIA's and AMD's tools tell it.

The form of `nvidia-smi -q -d UTILIZATION`, `rocm-smi --showuse --csv` and `amd-smi metric --usage
--csv` is that of captures in public repositories (drivers 415 to 545; ROCm 6).
"""

from dataclasses import dataclass

from tests.bootstrap.box import Box

_PLAY = r"""
read -r up _ <"$GPUCOST_ROOT/proc/uptime"
awk -v up="${up%.*}" -v gpus="$GPUS" -v window="$WINDOW_S" '
  { if ($1 <= up && up < $2) now = $3; if ($1 < up + 1 && $2 > up - window && $3 > most) most = $3 }
"""
_NVIDIA = (
    r"""case "$*" in
*compute-apps*) cat "$GPUCOST_ROOT/processes"; exit ;;
*UTILIZATION*) ;;
*) exit ;;
esac
if [ -s "$GPUCOST_ROOT/smi-fails" ]; then cat "$GPUCOST_ROOT/smi-fails"; exit 9; fi"""
    + _PLAY
    + r"""
  END {
    print "\n==============NVSMI LOG==============\n\nAttached GPUs            : " gpus
    for (i = 0; i < gpus; i++) {
      printf "GPU 00000000:%02X:00.0\n    Utilization\n", i
      shown = (window == "mig") ? "N/A" : (now + 0) " %"
      printf "        GPU                               : %s\n", shown
      printf "        Memory                            : %s\n", shown
      printf "        Encoder                           : %s\n", (window == "mig") ? "N/A" : "0 %"
      print "    GPU Utilization Samples"
      if (window + 0 > 0) {
        printf "        Duration                      : %.2f sec\n", window
        print "        Number of Samples             : 99"
        printf "        Max                           : %d %%\n", most
      } else {
        print "        Duration                          : Not Found"
        print "        Max                               : Not Found"
      }
    }
  }' "$GPUCOST_ROOT/work"
"""
)
_ROCM = (
    _PLAY
    + r"""
  END {
    print "WARNING: AMD GPU device(s) is/are in a low-power state.\n"
    print "device,GPU use (%),GFX Activity"
    for (i = 0; i < gpus; i++) printf "card%d,%d,35430\n", i, now
  }' "$GPUCOST_ROOT/work"
"""
)
_AMD_SMI = (
    _PLAY
    + r"""
  END {
    print "gpu,gfx_activity,umc_activity,mm_activity,jpeg_activity"
    for (i = 0; i < gpus; i++) printf "%d,%d,0,N/A,\"[0, 0]\"\n", i, now
  }' "$GPUCOST_ROOT/work"
"""
)
TOOLS = {"nvidia-smi": _NVIDIA, "rocm-smi": _ROCM, "amd-smi": _AMD_SMI}


@dataclass(frozen=True)
class Work:
    """GPUs that are busy from a second since boot to another, in percent."""

    start_s: float
    end_s: float
    percent: int = 80


def give_gpus(box: Box, *work: Work, tool: str = "nvidia-smi") -> None:
    """Let the GPUs of a machine do that work, as this tool tells it."""
    box.write("work", "".join(f"{one.start_s} {one.end_s} {one.percent}\n" for one in work) or "\n")
    box.write("processes", "")
    box.tool(tool, TOOLS[tool])

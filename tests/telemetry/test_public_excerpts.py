"""What people post: short excerpts and forms of public sources, with figures worked out by hand.

Each was found and read on 2026-11-27. The figures of the first 33 were written down before the
product read them; those of the later ones were checked by hand after it had. Cells are those of the
source where it shows any; names of hosts and people are not kept.
`says` is a word of the notes; `refused` one of the sentence that refuses it.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from planner.profile.model import Latency, Profile
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from tests.telemetry.reading import read_source

UTIL, USED, POWER, PROCESS = "util.kernel_time", "mem.used_gib", "power.board_w", "mem.process_gib"


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """One excerpt.

    Attributes:
        source: where it was found.
        text: what was given to the product.
        gpus: how many there are.
        means: of a slot, for each entry of the profile that has it.
        length_s: of the window.
        says: a word of the notes.
        refused: a word of the refusal.
    """

    source: str
    text: str
    gpus: int | None = None
    means: dict[str, list[float]] = field(default_factory=dict)
    length_s: float | None = None
    says: str = ""
    refused: str = ""


def table(version: str, *gpus: tuple[str, str, str, str]) -> str:
    """Return nvidia-smi's table of some GPUs: name, power, memory, load."""
    head = f"| NVIDIA-SMI {version}  Driver Version: {version}  CUDA Version: 12.2 |\n"
    return head + "".join(
        f"|   {i}  {name}  Off  | 00000000:{i:02X}:00.0 Off |                    0 |\n"
        f"| N/A   43C    P0    {power} | {memory} |    {load}      Default |\n"
        for i, (name, power, memory, load) in enumerate(gpus)
    )


DCGM_T4 = 'gpu="0",UUID="GPU-6d5c0ac5",modelName="Tesla T4",Hostname="a"'
INSTANCE = 'gpu="0",UUID="GPU-b0e99009",GPU_I_PROFILE="1g.24gb",GPU_I_ID="{}",Hostname="h"'
GENAI = "Metric,avg,min,max,p99,p95,p90,p75,p50,p25\n"

EXCERPTS = {
    "a table of one card": Excerpt(
        source="ARCC-RACE/deepracer-for-dummies#58 (2019)",
        text=table("418.87.00", ("GRID K520 ", "17W / 125W", " 46MiB /  4037MiB", "0%")),
        gpus=1,
        means={UTIL: [0.0], USED: [46 / 1024], POWER: [17.0]},
    ),
    "a table with a cut name": Excerpt(
        source="ZJULearning/pixel_link#135 (2019)",
        text=table("396.45", ("Tesla V100-SXM2...", "55W / 300W", "6671MiB / 16160MiB", "0%")),
        gpus=1,
        means={UTIL: [0.0], USED: [6671 / 1024], POWER: [55.0]},
    ),
    "a table of two cards": Excerpt(
        source="YanjieZe/3D-Diffusion-Policy#125 (2025); the second card's load is ours",
        text=table(
            "560.35.03",
            ("NVIDIA GeForce RTX 4090 ", "162W / 450W", "19809MiB / 24564MiB", "3%"),
            ("NVIDIA GeForce RTX 4090 ", "164W / 450W", "19786MiB / 24564MiB", "5%"),
        ),
        gpus=2,
        means={UTIL: [0.03, 0.05], USED: [19809 / 1024, 19786 / 1024], POWER: [162.0, 164.0]},
    ),
    "a table of three of eight": Excerpt(
        source="hkust-nlp/PEM_composition#5 (2023)",
        text=table(
            "460.73.01",
            ("Tesla V100-SXM2... ", "61W / 300W", "3358MiB / 32510MiB", "0%"),
            ("Tesla V100-SXM2... ", "62W / 300W", "3010MiB / 32510MiB", "0%"),
            ("Tesla V100-SXM2... ", "67W / 300W", "2934MiB / 32510MiB", "0%"),
        ),
        gpus=3,
        means={POWER: [61.0, 62.0, 67.0]},
    ),
    "a query and a list of processes": Excerpt(
        source="a bug report of a code index (2026): three columns, a rule, then processes",
        text="utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n95 %, 745 MiB, 6144 MiB\n"
        "---\npid, process_name, used_gpu_memory [MiB]\n1580, /app/llama-server, 340 MiB\n",
        gpus=1,
        means={PROCESS: [340 / 1024]},
    ),
    "a query of Korean course notes": Excerpt(
        source="Korean notes on GPU containers: one query of two RTX 3090",
        text="index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], "
        "temperature.gpu\n0, NVIDIA GeForce RTX 3090, 98 %, 22000 MiB, 24576 MiB, 65\n"
        "1, NVIDIA GeForce RTX 3090, 45 %, 8000 MiB, 24576 MiB, 52\n",
        gpus=2,
        means={UTIL: [0.98, 0.45], USED: [22000 / 1024, 8000 / 1024], "temp.core_c": [65, 52]},
    ),
    "a query every two seconds": Excerpt(
        source="a Python test of a benchmark's log (2026)",
        text="timestamp, utilization.gpu [%], memory.used [MiB], memory.total [MiB], "
        "temperature.gpu, power.draw [W]\n"
        "2026/08/17 10:00:00.000, 95 %, 7650 MiB, 8188 MiB, 73, 81.25 W\n"
        "2026/08/17 10:00:02.000, 97 %, 7750 MiB, 8188 MiB, 74, 82.00 W\n",
        gpus=1,
        means={UTIL: [0.96], POWER: [81.625], USED: [7700 / 1024]},
        length_s=4.0,
    ),
    "a query every minute": Excerpt(
        source="a Python test of a SageMaker pipeline (2024)",
        text="timestamp, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
        "2024/03/01 12:00:00.000, 85 %, 4096 MiB, 16384 MiB\n"
        "2024/03/01 12:01:00.000, 92 %, 4200 MiB, 16384 MiB\n",
        gpus=1,
        means={UTIL: [0.885], USED: [4148 / 1024]},
        length_s=120.0,
    ),
    "a query without a time": Excerpt(
        source="a Python test of a quantum simulator's log",
        text="utilization.gpu [%], memory.used [MiB]\n40 %, 1024 MiB\n60 %, 2048 MiB\n",
        gpus=1,
        means={UTIL: [0.5], USED: [1.5]},
        says="taken as readings of one GPU after each other",
    ),
    "a header of one's own over noheader rows": Excerpt(
        source="anjana5anand/Distracted-Driving-Detection gpu_mem.sh; rows by its query",
        text="timestamp,index,name,gpu_utilization[%],memory.total[MiB],memory.used[MiB],"
        "memory.free[MiB],temperature[°C]\n"
        "2025/04/01 10:00:00.000, 0, NVIDIA A30, 50, 24576, 2048, 22528, 40\n"
        "2025/04/01 10:00:01.000, 0, NVIDIA A30, 70, 24576, 2048, 22528, 41\n",
        gpus=1,
        means={UTIL: [0.6], USED: [2.0], "temp.core_c": [40.5]},
        length_s=2.0,
    ),
    "a date with a comma before the nanoseconds": Excerpt(
        source="a shell script that puts `date --iso-8601=ns` before each row",
        text="timestamp,utilization.gpu,utilization.memory,memory.used,power.draw\n"
        "2025-04-01T10:00:00,100000000+00:00,50, 20, 2048, 100.5\n"
        "2025-04-01T10:00:01,100000000+00:00,70, 20, 2048, 110.5\n",
        gpus=1,
        means={UTIL: [0.6], POWER: [105.5], USED: [2.0]},
        length_s=2.0,
    ),
    "a clock line before each table": Excerpt(
        source="a shell script that appends `date +%T` and a query (temp.log)",
        text="\n\n10:00:00\npower.draw [W], utilization.gpu [%], utilization.memory [%]\n"
        "100.00 W, 40 %, 10 %\n\n\n10:00:10\npower.draw [W], utilization.gpu [%], "
        "utilization.memory [%]\n200.00 W, 60 %, 20 %\n",
        gpus=1,
        means={UTIL: [0.5], POWER: [150.0]},
        length_s=20.0,
    ),
    "a logger with pynvml": Excerpt(
        source="a pynvml logger: gpu_metrics_log.csv (header as written)",
        text="timestamp,gpu_index,gpu_name,temperature_c,power_w,power_limit_w,gpu_util_percent,"
        "vram_util_percent\n2025-04-01T10:00:00,0,NVIDIA L4,50,60.5,72,80,40\n"
        "2025-04-01T10:00:02,0,NVIDIA L4,52,62.5,72,90,40\n",
        gpus=1,
        means={UTIL: [0.85], POWER: [61.5], "power.limit_w": [72.0]},
        length_s=4.0,
        says="'vram_util_percent'",
    ),
    "bus addresses at 100 ms": Excerpt(
        source="alisiahkoohi/gpulog log_gpu_utilization.sh; rows by its query",
        text="timestamp, pci.bus_id, utilization.gpu [%], utilization.memory [%], "
        "memory.used [MiB]\n"
        "2025/04/01 10:00:00.000, 00000000:17:00.0, 40 %, 5 %, 1024 MiB\n"
        "2025/04/01 10:00:00.001, 00000000:65:00.0, 80 %, 5 %, 1024 MiB\n"
        "2025/04/01 10:00:00.100, 00000000:17:00.0, 60 %, 5 %, 1024 MiB\n"
        "2025/04/01 10:00:00.101, 00000000:65:00.0, 90 %, 5 %, 1024 MiB\n",
        gpus=2,
        means={UTIL: [0.5, 0.85]},
    ),
    "DCGM's guide to MIG": Excerpt(
        source="NVIDIA's DCGM user guide, `dcgmi dmon -e 1001,1004` (two instances)",
        text="    # Entity  GRACT  TENSO\n          Id\n        GPU 0  0.457  0.442\n"
        "      GPU-I 0  0.534  0.516\n      GPU-I 1  0.533  0.515\n        GPU 0  0.845  0.816\n"
        "      GPU-I 0  0.986  0.953\n      GPU-I 1  0.985  0.952\n",
        gpus=1,
        means={UTIL: [0.651], "util.tensor_active": [0.629]},
        says="GPU 0, instance 1: busy 0.759",
    ),
    "MIG with one busy instance": Excerpt(
        source="zhuanlan.zhihu.com/p/558046644: dcgmi dmon of a job on the second instance",
        text="  # Entity  GRACT  SMACT  SMOCC  TENSO  DRAMA\n      Id\n"
        "   GPU 0  0.429  0.429  0.364  0.011  0.400\n"
        "   GPU-I 0  0.000  0.000  0.000  0.000  0.000\n"
        "   GPU-I 1  0.750  0.750  0.637  0.020  0.800\n",
        gpus=1,
        means={UTIL: [0.429], "util.sm_active": [0.429], "util.dram_active": [0.4]},
    ),
    "a scrape of a busy T4": Excerpt(
        source="CNCF conformance report of Ericsson ECCD 2.34.0 (driver 590.48.01)",
        text=f"DCGM_FI_DEV_GPU_UTIL{{{DCGM_T4}}} 91\nDCGM_FI_DEV_FB_USED{{{DCGM_T4}}} 5120\n"
        f"DCGM_FI_DEV_POWER_USAGE{{{DCGM_T4}}} 68.244000\n"
        f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{DCGM_T4}}} 0.156205\n",
        gpus=1,
        means={UTIL: [0.91], USED: [5.0], POWER: [68.244]},
    ),
    "three instances of one card": Excerpt(
        source="a Go test of a DCGM proxy (FilterMetricsMIG)",
        text="".join(
            f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{INSTANCE.format(number)}}} {busy}\n"
            for number, busy in ((5, "0.174817"), (6, "0.000000"), (15, "0.500000"))
        ),
        gpus=1,
        means={UTIL: [0.5, 0.174817, 0.0]},
    ),
    "both measures of busy time": Excerpt(
        source="a TypeScript test: cards that are not split give both",
        text='DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",namespace="ml",pod="p"} 80\n'
        'DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-a",namespace="ml",pod="p"} 0.7\n'
        'DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",namespace="ml",pod="p"} 40\n'
        'DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="1",UUID="GPU-b",namespace="ml",pod="p"} 0.9\n',
        gpus=2,
        means={UTIL: [0.8, 0.4]},
    ),
    "NVML of 2018": Excerpt(
        source="pytimer/gpu-exporter README: its metrics are of a name of its own",
        text='# TYPE nvidia_gpu_memory_used_mb gauge\nnvidia_gpu_memory_used_mb{name="Tesla P4",'
        'uuid="GPU-9bb57e8e"} 0\nnvidia_gpu_power_usage{name="Tesla P4",uuid="GPU-9bb57e8e"} 7\n',
        refused="no GPU metric among its 2 metrics",
    ),
    "two cards with blanked uuids": Excerpt(
        source="HAMi/volcano-vgpu-device-plugin README: deviceuuid GPU-xxxx of both",
        text="# TYPE HostCoreUtilization gauge\n"
        'HostCoreUtilization{deviceidx="0",deviceuuid="GPU-xxxx",zone="vGPU"} 0\n'
        'HostCoreUtilization{deviceidx="1",deviceuuid="GPU-xxxx",zone="vGPU"} 100\n'
        'HostGPUMemoryUsage{deviceidx="0",deviceuuid="GPU-xxxx",zone="vGPU"} 5.6366661632e+10\n'
        'HostGPUMemoryUsage{deviceidx="1",deviceuuid="GPU-xxxx",zone="vGPU"} 5.8484457472e+10\n',
        gpus=2,
        means={UTIL: [0.0, 1.0], USED: [56366661632 / 2**30, 58484457472 / 2**30]},
    ),
    "HAMi's monitor at rest": Excerpt(
        source="a Go source of HAMi's vGPU monitor, with an answer in its comment",
        text="# TYPE HostCoreUtilization gauge\n"
        'HostCoreUtilization{deviceidx="0",deviceuuid="GPU-59ab1128",zone="vGPU"} 0\n'
        'HostGPUMemoryUsage{deviceidx="0",deviceuuid="GPU-59ab1128",zone="vGPU"} 2.87244288e+08\n',
        gpus=1,
        means={UTIL: [0.0], USED: [0.267517]},
    ),
    "an older Jetson": Excerpt(
        source="hordiales/jetson-tx1-dev SCRIPTS.md",
        text="RAM 3468/3983MB (lfb 48x4MB) SWAP 873/8192MB (cached 295MB) cpu [17%,13%,29%,5%]@408 "
        "EMC 1%@408 APE 25 GR3D 3%@76\nRAM 3607/3983MB (lfb 47x4MB) SWAP 873/8192MB (cached 281MB) "
        "cpu [17%,11%,65%,0%]@1734 EMC 1%@1600 APE 25 GR3D 39%@76\n",
        gpus=1,
        means={UTIL: [0.39], USED: [3607 / 1024]},  # 3 % is idle
        says="idle lead-in",
    ),
    "an Orin Nano": Excerpt(
        source="a Python test of a llama.cpp benchmark (2026)",
        text="06-13-2026 14:17:07 RAM 3308/7607MB (lfb 32x4MB) SWAP 11/3804MB (cached 0MB) "
        "CPU [0%@1510] GR3D_FREQ 99% cpu@61.5C soc2@60.2C soc0@58.0C gpu@62.3C tj@62.4C "
        "soc1@59.9C VDD_IN 12517mW/10898mW VDD_CPU_GPU_CV 4959mW/3943mW VDD_SOC 2562mW/2282mW\n",
        gpus=1,
        means={UTIL: [0.99], USED: [3308 / 1024], POWER: [12.517], "temp.core_c": [62.3]},
    ),
    "a Thor that gives clocks alone": Excerpt(
        source="a Go test: `GR3D_FREQ @[314,314,314]` is an unknown load, not 0",
        text="RAM 9000/125772MB (lfb 2x4MB) GR3D_FREQ @[314,314,314] cpu@40C\n",
        gpus=1,
        means={USED: [9000 / 1024]},
    ),
    "GenAI-Perf of a RAG": Excerpt(
        source="a RAG blueprint's README: profile_export_genai_perf.csv",
        text=GENAI + "Time To First Token (ms),23.94,22.92,30.75,30.10,27.51,24.26,23.38,23.20,23\n"
        'Request Latency (ms),"5,919.16","5,912.73","5,934.45","5,933.31","5,928.74","5,923.03",'
        '"5,920.17","5,918.56","5,915.29"\n\nMetric,Value\n'
        "Output Token Throughput (per sec),86.48\nRequest Throughput (per sec),0.17\n",
        means={"serving": [86.48, 0.17, 23.94, 5919.16]},
    ),
    "GenAI-Perf of Dynamo": Excerpt(
        source="NVIDIA/cloudai, workload ai_dynamo (documentation)",
        text=GENAI
        + "Time To Second Token (ms),26.05,0.00,133.51,96.12,36.56,34.88,34.35,33.55,1.78\n"
        "Inter Token Latency (ms),30.35,27.59,35.60,35.23,33.88,32.53,31.05,30.13,29.04\n\n"
        "Metric,Value\nOutput Token Throughput (per sec),261.25\n"
        "Request Throughput (per sec),1.50\nRequest Count (count),40.00\n",
        means={"serving": [261.25, 1.5]},
    ),
    "GenAI-Perf in nanoseconds": Excerpt(
        source="triton-inference-server: a test of GenAI-Perf of 2024",
        text=GENAI + "Time To First Token (ns),2000000,2,2,2,2,2,2,2,2\n"
        "Request Latency (ns),8000000,7,9,9,9,9,8,8,8\n\nMetric,Value\n"
        "Output Token Throughput (per sec),900.00\nRequest Throughput (per sec),200.00\n",
        means={"serving": [900.0, 200.0, 2.0, 8.0]},
    ),
    "a vLLM that says why requests wait": Excerpt(
        source="a Python test: waiting_by_reason repeats what num_requests_waiting says",
        text='vllm:num_requests_running{engine="0",model_name="m"} 24.0\n'
        'vllm:num_requests_waiting{engine="0",model_name="m"} 72.0\n'
        'vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 72.0\n'
        'vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="deferred"} 0.0\n'
        'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.4565217391304348\n',
        means={"queue": [24.0, 72.0, 0.456522]},
    ),
    "HWiNFO with a comma at the end": Excerpt(
        source="a TypeScript test of a HWiNFO viewer (2026)",
        text='Date,Time,"Total CPU Usage [%]","CPU Package [°C]","GPU Temperature [°C]",'
        '"GPU Core Load [%]","Framerate Displayed (avg) [FPS]",\n'
        "9.6.2026,12:00:00.000,45.0,70.0,75.0,99.0,120.0,\n"
        "9.6.2026,12:00:02.000,55.0,72.0,77.0,98.0,118.0,\n",
        gpus=1,
        means={UTIL: [0.985], "temp.core_c": [76.0]},
        length_s=4.0,
    ),
    "rocm-smi as CSV": Excerpt(
        source="a Python test of an eight-card run: device,GPU use (%),...",
        text="device,GPU use (%),GPU Memory Allocated (VRAM%)\n"
        + "".join(f"card{rank},90,4\n" for rank in range(8)),
        gpus=8,
        means={UTIL: [0.9] * 8},
    ),
    "rocm-smi as JSON": Excerpt(
        source="a Python test of a mining monitor: one card",
        text='{"card0":{"Temperature (Sensor edge) (C)":"38.0","Temperature (Sensor junction) (C)":'
        '"39.0","Temperature (Sensor memory) (C)":"58.0","GPU use (%)":"7",'
        '"GPU Memory Allocated (VRAM%)":"13"}}',
        gpus=1,
        means={UTIL: [0.07], "temp.core_c": [38.0]},
    ),
    "a list of counters": Excerpt(
        source="Canonical's charm of dcgm-exporter: custom metrics CSV",
        text="# DCGM FIELD, Prometheus metric type, help message\n"
        "DCGM_FI_DEV_SM_CLOCK,    gauge, SM clock frequency (in MHz).\n",
        refused="names counters",
    ),
    "dmon with all groups, of 2016": Excerpt(
        source="mozilla/DeepSpeech#178 (2016): dmon -s pucvmet; figures ours",
        text="# gpu   pwr  temp    sm   mem   enc   dec  mclk  pclk pviol tviol    fb  bar1 sbecc "
        "dbecc   pci rxpci txpci\n"
        "# Idx     W     C     %     %     %     %   MHz   MHz     %  bool    MB    MB  errs "
        " errs  errs  MB/s  MB/s\n"
        "    0   120    80    30     7     0     0  4513  1683     0     0  1024     2     -     - "
        "    0    41     8\n"
        "    1    90    70    10     5     0     0  4513  1733     0     0  2048     2     -     - "
        "    0    25    14\n"
        "    0   140    80    50     7     0     0  4513  1683     0     0  1024     2     -     - "
        "    0    41     8\n"
        "    1   110    70    20     5     0     0  4513  1733     0     0  2048     2     -     - "
        "    0    25    14\n",
        gpus=2,
        means={UTIL: [0.4, 0.15], POWER: [130.0, 100.0], USED: [1.0, 2.0]},
    ),
    "dmon of DCGM's Go binding": Excerpt(
        source="NVIDIA/gpu-monitoring-tools#12 (2018); figures ours",
        text="$ go build && ./dmon\nStarted host engine version 1.4.3 using socket path: /tmp/s\n"
        "# gpu   pwr  temp    sm   mem   enc   dec  mclk  pclk\n"
        "# Idx     W     C     %     %     %     %   MHz   MHz\n"
        "    0    50    48    40     1     0     0  3505   936\n"
        "    0    60    48    60     1     0     0  3505   936\n",
        gpus=1,
        means={UTIL: [0.5], POWER: [55.0]},
    ),
    "a query of driver 375 without a name": Excerpt(
        source="paradoxxxzero/gnome-shell-system-monitor-applet#356 (2017); figures ours",
        text="==============NVSMI LOG==============\n\n"
        "Timestamp          : Tue Aug 15 16:00:35 2017\n"
        "Driver Version     : 375.66\n\nAttached GPUs      : 1\nGPU 0000:01:00.0\n"
        "    FB Memory Usage\n        Total          : 2048 MiB\n        Used       : 1024 MiB\n"
        "    BAR1 Memory Usage\n        Used           : 5 MiB\n    Utilization\n"
        "        Gpu            : 40 %\n        Memory         : 6 %\n",
        gpus=1,
        means={UTIL: [0.4], USED: [1.0], "util.mem_controller": [0.06]},
    ),
    "lower-case names of instances and boards": Excerpt(
        source="NVIDIA/dcgm-exporter#272 (2024); figures ours",
        text='dcgm_fi_prof_gr_engine_active{gpu="3",uuid="GPU-a",GPU_I_PROFILE="4g.40gb",GPU_I_ID="1"'
        ',container_name="",pod_name=""} 0.25\n'
        'dcgm_fi_prof_gr_engine_active{gpu="4",uuid="GPU-b",container_name="c",pod_name="d"} 0.5\n',
        gpus=2,
        means={UTIL: [0.25, 0.5]},
    ),
    "a table of split boards": Excerpt(
        source="NVIDIA/dcgm-exporter#507 (2025): N/A in place of memory; figures ours",
        text="| NVIDIA-SMI 550.90.07  Driver Version: 550.90.07  CUDA Version: 12.4 |\n"
        "|   0  NVIDIA H100 NVL   On  |   00000000:21:00.0 Off |                   On |\n"
        "| N/A   44C    P0    64W /  400W |                  N/A   |     N/A      Default |\n"
        "|                                |                        |              Enabled |\n"
        "|   1  NVIDIA H100 NVL   On  |   00000000:41:00.0 Off |                   On |\n"
        "| N/A   43C    P0    66W /  400W |                  N/A   |     N/A      Default |\n",
        gpus=2,
        means={POWER: [64.0, 66.0], UTIL: []},
    ),
    "a router's page of vLLM metrics": Excerpt(
        source="vllm-project/production-stack#318 (2025): no engine label; figures ours",
        text="# TYPE process_open_fds gauge\nprocess_open_fds 45.0\n"
        '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name="m"} 3.0\n'
        '# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{model_name="m"} 1.0\n'
        '# TYPE vllm:gpu_cache_usage_perc gauge\nvllm:gpu_cache_usage_perc{model_name="m"} 0.25\n',
        means={"queue": [3.0, 1.0, 0.25]},
    ),
    "a table of rocm-smi without a load": Excerpt(
        source="ROCm/tensorflow-upstream#156 (2018)",
        text="====================    ROCm System Management Interface    ====================\n"
        " GPU  Temp    AvgPwr   SCLK     MCLK     Fan      Perf    SCLK OD    MCLK OD\n"
        "  0   40c     80.50W   1411Mhz  300Mhz   0.0%     auto      0%         0%\n",
        refused="rocm-smi",
    ),
    "lines of rocm-smi": Excerpt(
        source="ROCm/ROC-smi#62 (2019)",
        text="=====ROCm System Management Interface=====\n"
        "GPU[0] \t\t: Temperature (Sensor edge) (c): 50.0\nGPU[0] \t\t: GPU use (%): 40\n",
        refused="rocm-smi -a --csv",
    ),
    "amd-smi for people": Excerpt(
        source="joular/powerjoular#67 (2025)",
        text="GPU: 0\n    USAGE:\n        GFX_ACTIVITY: 30 %\n        UMC_ACTIVITY: 1 %\n"
        "    POWER:\n        SOCKET_POWER: 120 W\n",
        refused="amd-smi metric --json",
    ),
    "amdgpu_top": Excerpt(
        source="hakandundar34coding/system-monitoring-center#223 (2023)",
        text='{"DeviceName":"AMD","GRBM":{"Graphics Pipe":{"unit":"%","value":12}},"Sensors":'
        '{"GFX Power":{"unit":"W","value":34}}}\n',
        refused="amdgpu_top",
    ),
    "sacct for people": Excerpt(
        source="nebius/soperator#321 (2025)",
        text="JobID           JobName  AllocCPUS     MaxRSS      State \n"
        "------------ ---------- ---------- ---------- ---------- \n"
        "19.0              sleep          2      6040K  COMPLETED \n",
        refused="sacct -P -o",
    ),
    "sacct without a header": Excerpt(
        source="ResearchComputing/Documentation#498 (2025): sacct -Pno TRESUsageInMax -p",
        text="\ncpu=00:10:00,energy=0,gres/gpumem=2048M,gres/gpuutil=80,mem=1000K|\n",
        refused="Leave out -n",
    ),
    "a list of GPUs": Excerpt(
        source="TheTumultuousUnicornOfDarkness/CPU-X#115 (2019)",
        text="GPU 0: GeForce GTX 1660 Ti (UUID: GPU-aaaa-bbbb)\n",
        refused="nvidia-smi -L",
    ),
    "an answer of Prometheus as Python prints it": Excerpt(
        source="GoogleCloudPlatform/ai-on-gke#937 (2025)",
        text="{'status': 'success', 'data': {'resultType': 'vector', 'result': []}}\n",
        refused="json.dump",
    ),
    "states of power alone": Excerpt(
        source="netdata/netdata#13577 (2022)", text="pstate\nP8\n", refused="utilization.gpu"
    ),
    "a board whose sensor is off": Excerpt(
        source="GDWR/jetson_exporter#14 (2025): GPU@-256C is unknown; figures ours",
        text="".join(
            f"04-11-2025 10:36:2{s} RAM 2048/62801MB (lfb 1759x4MB) CPU [0%@729,0%@729] "
            f"EMC_FREQ 0%@2133 GR3D_FREQ {load}%@[0,0] CPU@44.562C GPU@-256C tj@44.343C "
            "VDD_GPU_SOC 2340mW/2340mW VIN_SYS_5V0 4025mW/4025mW NC 0mW/0mW\n"
            for s, load in ((7, 20), (8, 40))
        ),
        gpus=1,
        means={UTIL: [0.3], USED: [2.0], "temp.core_c": []},
        length_s=2.0,
    ),
    "a TX2 without units of power": Excerpt(
        source="FindHao/tx-utils#3 (2019): VDD_IN in mW; figures ours",
        text="RAM 1024/7852MB (lfb 1164x4MB) CPU [9%@345,21%@345] EMC_FREQ 0% GR3D_FREQ 50% "
        "PLL@42.5C GPU@41C VDD_SYS_GPU 153/158 VDD_IN 3140/3208\n",
        gpus=1,
        means={UTIL: [0.5], USED: [1.0], POWER: [3.14], "temp.core_c": [41.0]},
    ),
    "names that are cut off": Excerpt(
        source="CHTC/templates-GPUs#24 (2022); figures ours",
        text=table(
            "515.48.07",
            ("NVIDIA A100-SXM...", "350W / 500W", "8192MiB / 81920MiB", "100%"),
            ("NVIDIA A100-SXM...", "300W / 500W", "4096MiB / 81920MiB", "50%"),
        ),
        gpus=2,
        means={UTIL: [1.0, 0.5], USED: [8.0, 4.0], POWER: [350.0, 300.0]},
    ),
    "the first metrics of SGLang": Excerpt(
        source="sgl-project/sglang#1853 (2024): a label `name`; figures ours",
        text='# TYPE sglang:token_usage gauge\nsglang:token_usage{name="m"} 0.25\n'
        'sglang:num_running_reqs{name="m"} 4.0\nsglang:num_queue_reqs{name="m"} 2.0\n',
        means={"queue": [4.0, 2.0, 0.25]},
    ),
    "SGLang's metrics behind a gateway": Excerpt(
        source="smg-project/smg#813 (2026): sglang_ in place of sglang:; figures ours",
        text="# TYPE sglang_token_usage gauge\n"
        'sglang_token_usage{model_name="m",tp_rank="0",worker_addr="grpc://127.0.0.1:8001"} 0.5\n'
        'sglang_num_running_reqs{model_name="m",worker_addr="grpc://127.0.0.1:8001"} 3\n'
        'sglang_num_queue_reqs{model_name="m",worker_addr="grpc://127.0.0.1:8001"} 1\n',
        means={"queue": [3.0, 1.0, 0.5]},
    ),
    "dmon of loads alone": Excerpt(
        source="influxdata/telegraf#5532 (2020): dmon -s u; figures ours",
        text="# gpu    sm   mem   enc   dec\n# Idx     %     %     %     %\n"
        "    0    30     5     0     0\n    0    50     5     0     0\n",
        gpus=1,
        means={UTIL: [0.4], "util.mem_controller": [0.05]},
    ),
    "a benchmark of a server as it prints": Excerpt(
        source="vllm-project/vllm#18566 (2025), sgl-project/sglang#9812 (2025)",
        text="============ Serving Benchmark Result ============\n"
        "Successful requests:                     1000\n",
        refused="--save-result",
    ),
    "statistics of jtop": Excerpt(
        source="rbonghi/jetson_stats#81 (2020)",
        text="<key>, <value>\ntime, 2020-09-03 10:28:30.003209\nGPU, 30\nRAM, 1745160\n",
        refused="tegrastats --interval",
    ),
    "a column that ends in %": Excerpt(
        source="ilapetrovic/best-llm-finder-pipeline, gpu_usage_log.csv (2025); loads are ours",
        text="timestamp,gpu_name,gpu_util%,mem_util%,mem_used_MB,mem_total_MB,temp_C\n"
        "2025/10/28 11:25:36.562,NVIDIA A40,40,2,3,46068,27\n"
        "2025/10/28 11:25:41.562,NVIDIA A40,60,2,1067,46068,30\n",
        gpus=1,
        means={UTIL: [0.5], USED: [535 / 1024]},
        says="'mem_util%' may be capacity or controller time",
    ),
    "the index after the word GPU": Excerpt(
        source="AkshayRoyal/gpu-usage, gpu_usage_cleaned.csv (2023); the second card is ours",
        text="timestamp,index_gpu,name,gpu_utilization,gpu_memory_used,gpu_memory_total\n"
        + "".join(
            f"2023-06-22 18:56:5{6 + second}, {gpu}, NVIDIA GeForce RTX 2070,{load},841,8192\n"
            for second in range(2)
            for gpu, load in enumerate((22, 24))
        ),
        gpus=2,
        means={UTIL: [0.22, 0.24], USED: [841 / 1024] * 2},
    ),
    "DCGM's own names of fields": Excerpt(
        source="4179e1/dcgm_test, dmon.csv (2024)",
        text="GPUId,TimeStampUs,Field,Values\n"
        "0,1718783836956328,power_usage_instant,71.20\n0,1718783837193069,power_usage_instant,70.49\n"
        "1,1718783836956328,power_usage_instant,72.00\n1,1718783837193069,power_usage_instant,72.00\n"
        "0,1718783836935856,throttle_reason_idle,1\n",
        gpus=2,
        means={POWER: [70.845, 72.0]},
    ),
    "memory of the host beside that of the GPU": Excerpt(
        source="cosmosapjw-quantum/omoknuni_small, resource_monitor.log (8be6bdd, 2025)",
        text="timestamp,used_memory_mb,gpu_memory_mb,cpu_usage_percent,gpu_usage_percent\n"
        "0,4047,512,1.77,50.00\n10,4544,512,13.33,50.00\n",
        gpus=1,
        means={UTIL: [0.5], USED: [0.5]},
    ),
    "tegrastats before its GPU ran": Excerpt(
        source="guesswho798/log-project, tegrastats.log (e3b6705, 2021)",
        text="RAM 2633/7850MB (lfb 3x4MB) CPU [0%@2035,0%@2035] GPU@41C VDD_IN 3624/3624\n"
        "RAM 2635/7850MB (lfb 3x4MB) CPU [15%@2039,6%@2035] GR3D_FREQ 18%@1134 VDD_IN 3652/366\n",
        gpus=1,
        means={UTIL: [0.18], USED: [2634 / 1024], POWER: [3.638]},
        says="CPU and GPU share the memory",
    ),
    "a log of MSI Afterburner": Excerpt(
        source="AungMoonLord, DanM-r, M6aH3a (HardwareMonitoring.hml, 2024-2026)",
        text="00, 04-01-2026 14:34:33, Hardware monitoring log v1.6 \n"
        "01, 04-01-2026 14:34:33, NVIDIA GeForce RTX 4060\n"
        "02, 04-01-2026 14:34:33, GPU usage           ,Memory usage        ,Power\n",
        refused="a log of MSI Afterburner .*HWiNFO or GPU-Z",
    ),
    "a power meter of a socket": Excerpt(
        source="RITTISHg/TN_impact, power_log.csv (49f3f57, 2026)",
        text="timestamp,voltage,current,power\n2026-03-13 21:19:33,230.00,2.000,423.20\n",
        refused="a power meter .*not of its GPUs",
    ),
}


def _read(tmp_path: Path, excerpt: Excerpt) -> Profile:
    file = tmp_path / "excerpt.txt"
    file.write_text(excerpt.text, encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    return profile


def _served(profile: Profile) -> dict[str, list[float | None]]:
    """Return what a server told: rates and latencies, and its queue."""
    serving, latency = profile.job.serving, profile.job.latency_ms
    assert serving is not None
    first = serving.first_token_ms
    told = [serving.generated_tokens_per_s, profile.job.requests_per_s]
    told += [first.mean] if first else []
    told += [latency.mean] if latency else []
    queue = [serving.requests_running, serving.requests_waiting, serving.kv_cache_fraction]
    return {"serving": told, "queue": queue}


@pytest.mark.parametrize("name", EXCERPTS)
def test_an_excerpt_is_read_as_its_figures_say(name: str, tmp_path: Path) -> None:
    """Count, means and length are those worked out by hand."""
    excerpt = EXCERPTS[name]
    if excerpt.refused:
        with pytest.raises(InputError, match=excerpt.refused):
            _read(tmp_path, excerpt)
        return
    profile = _read(tmp_path, excerpt)
    assert profile.hardware.gpu_count == excerpt.gpus
    for slot, means in excerpt.means.items():
        if slot in {"serving", "queue"}:
            assert _served(profile)[slot] == pytest.approx(means)
        else:
            found = [one.mean for one in profile.readings(slot)]
            assert found == pytest.approx(means, abs=2e-6)
    if excerpt.length_s is not None:
        assert profile.window is not None
        assert profile.window.duration_s == pytest.approx(excerpt.length_s)
    assert excerpt.says in " ".join(profile.provenance.notes)


AIPERF = {
    "aiperf_version": "0.14.0",
    "input_config": {"endpoint": {"model_names": ["m/chat"]}},
    "request_throughput": {"unit": "requests/sec", "avg": 10.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 1280.0},
    "input_sequence_length": {"unit": "tokens", "avg": 1024.0},
    "time_to_first_token": {"unit": "ms", "avg": 61.0, "p50": 55.0, "p95": 170.0, "p99": 180.0},
    "request_latency": {"unit": "ms", "avg": 1560.0},
}
"""By its published schema (docs.nvidia.com/aiperf, v0.14.0)."""


def test_a_table_and_the_json_of_aiperf_say_the_same(tmp_path: Path) -> None:
    """Prompts of 1,024 tokens at 10 a second are 10,240; only the JSON names the model."""
    table = (
        GENAI + "Time To First Token (ms),61,1,1,180,170,1,1,55,1\nRequest Latency (ms),1560\n"
        'Input Sequence Length (tokens),"1,024.00"\n\nMetric,Value\n'
        "Output Token Throughput (tokens/sec),1280\nRequest Throughput (requests/sec),10\n"
    )
    for text, model in ((table, None), (json.dumps(AIPERF), "m/chat")):
        profile = _read(tmp_path, Excerpt(source="", text=text))
        assert _served(profile)["serving"] == [1280.0, 10.0, 61.0, 1560.0]
        serving = profile.job.serving
        assert serving is not None
        assert serving.prompt_tokens_per_s == 10_240.0
        assert serving.first_token_ms == Latency(mean=61.0, p50=55.0, p95=170.0, p99=180.0)
        assert serving.model == model

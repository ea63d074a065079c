"""What a line of gpustat looks like that tells of a GPU."""

import re

# [0] NVIDIA A100-SXM4-80GB | 41°C,   0 %,   61 / 400 W |     4 / 81920 MB | name(123M)
GPU = re.compile(
    r"^[ \t>]{0,16}\[(?P<index>\d{1,3})\] (?P<model>[^|\n]{1,80}?) *\|"
    r" *(?P<temperature>\d{1,3}|\?+)(?:'|°|\ufffd)C,"
    r"(?: *(?:\d{1,3}|\?+) %,(?=[^|\n]*%))? *(?P<utilization>\d{1,3}|\?+) %"
    r"(?:, *(?P<power>\d{1,5}|\?+)(?: /? *(?P<limit>\d{1,5}|\?+))? W)?[^|\n]{0,40}\|"
    r" *(?P<used>\d{1,8}|\?+) / *(?P<total>\d{1,8}|\?+) MB",
    re.MULTILINE,
)

"""Fakes of providers: servers on this machine that the real SDKs talk to."""

import os
from pathlib import Path

# moto reads these once, when it is imported: check types, keys and images, and know one image
# instead of 1,297 in each region, whose making took most of a test's time.
os.environ |= {
    "MOTO_AMIS_PATH": str(Path(__file__).with_name("images.json")),
    "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION": "true",
    "MOTO_ENABLE_AMI_VALIDATION": "true",
    "MOTO_ENABLE_KEYPAIR_VALIDATION": "true",
}

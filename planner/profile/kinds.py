"""The words of a job that the command line offers; the model, which has them too, loads slowly."""

KINDS = (
    "training",
    "interactive",
    "data_preparation",
    "inference_online",
    "inference_offline",
    "unknown",
)
PRECISIONS = (
    *("fp64", "fp32", "tf32", "amp-fp16", "amp-bf16", "fp16", "bf16"),
    *("fp8", "int8", "int4", "fp4"),
)

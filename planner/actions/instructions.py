"""How each action is applied: environment, launcher, and a line for each framework.

Facts about frameworks are of PyTorch 2.x, Lightning 2.x, Transformers 4.x and 5.x, Accelerate 1.x,
Keras 3.x and JAX (Flax, Optax, Grain). `N` stands for the value that `planner.actions.settings`
works out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

FRAMEWORKS = ("pytorch", "lightning", "transformers", "accelerate", "keras", "jax")
_SAME = "as in PyTorch"


@dataclass(frozen=True, slots=True, kw_only=True)
class HowTo:
    """How an action is applied.

    Attributes:
        by: `launcher` where the environment or the launcher does it, `code` where the program
            changes, `machine` where another machine is rented or this one is set up.
        environment: variables to set; `{name}` stands for the setting of that name, and without
            it the variable is left out. GPUCOST_* are read by no library: they carry a figure to
            the program. The others are as PyTorch, NCCL and Hugging Face document them.
        launcher: what the launcher is told.
        frameworks: one line for each of `FRAMEWORKS` that has its own way.
        words: for everything else, or how to find out whether it worked.
    """

    by: str
    environment: Mapping[str, str] = field(default_factory=dict)
    launcher: Mapping[str, str] = field(default_factory=dict)
    frameworks: Mapping[str, str] = field(default_factory=dict)
    words: str = ""


def _code(  # noqa: PLR0913 - one line a framework
    pytorch: str,
    *,
    lightning: str = _SAME,
    transformers: str = "",
    accelerate: str = _SAME,
    keras: str = "",
    jax: str = "",
    words: str = "",
    environment: Mapping[str, str] | None = None,
) -> HowTo:
    lines = (pytorch, lightning, transformers, accelerate, keras, jax)
    known = {name: line for name, line in zip(FRAMEWORKS, lines, strict=True) if line}
    return HowTo(by="code", environment=environment or {}, frameworks=known, words=words)


def _machine(words: str) -> HowTo:
    return HowTo(by="machine", words=words)


_LOADER = {
    "dataloader-workers": _code(
        "DataLoader(..., num_workers=N)",
        lightning="the DataLoader of the DataModule: num_workers=N",
        transformers="TrainingArguments(dataloader_num_workers=N): it passes 0 to the loader "
        "itself, so a changed default never applies",
        accelerate="the DataLoader given to prepare(): num_workers=N",
        keras="PyDataset(workers=N, use_multiprocessing=True); tf.data: map(..., "
        "num_parallel_calls=tf.data.AUTOTUNE)",
        jax="grain.DataLoader(worker_count=N), or tf.data: num_parallel_calls=tf.data.AUTOTUNE",
        words="first make sure that items, sampler and transforms draw no random numbers of their "
        "own: each worker would repeat or reorder them",
        environment={"GPUCOST_DATALOADER_WORKERS": "{num_workers}"},
    ),
    "dataloader-prefetch": _code(
        "DataLoader(..., num_workers >= 1, prefetch_factor=N)",
        transformers="TrainingArguments(dataloader_prefetch_factor=N)",
        keras="PyDataset(max_queue_size=N); tf.data: prefetch(tf.data.AUTOTUNE)",
        jax="grain.DataLoader(worker_buffer_size=N); put the next batch on the device while a step "
        "runs",
        words="df /dev/shm must hold workers x N batches",
        environment={"GPUCOST_PREFETCH_FACTOR": "{prefetch_factor}"},
    ),
    "persistent-workers": _code(
        "DataLoader(..., persistent_workers=True)",
        transformers="TrainingArguments(dataloader_persistent_workers=True)",
        words="not with a sampler that needs set_epoch inside the workers",
        environment={"GPUCOST_PERSISTENT_WORKERS": "1"},
    ),
    "pinned-memory": _code(
        "DataLoader(..., pin_memory=True)",
        lightning="DataLoader(..., pin_memory=True); Lightning copies asynchronously by itself",
        transformers="on by default: TrainingArguments(dataloader_pin_memory=True)",
        keras="tf.data copies through pinned memory by itself",
        environment={"GPUCOST_PIN_MEMORY": "1"},
    ),
    "async-copy": _code(
        "batch.to(device, non_blocking=True) from pinned memory; copy the next batch on a second "
        "stream while this one computes",
        lightning="done by itself for pinned batches",
        transformers="TrainingArguments(accelerator_config={'non_blocking': True})",
        accelerate="DataLoaderConfiguration(non_blocking=True)",
        keras="tf.data: prefetch_to_device",
        environment={"GPUCOST_NON_BLOCKING": "1"},
    ),
    "gpu-preprocessing": _code(
        "nvidia.dali pipeline with decoders.image(device='mixed') in place of the transforms, read "
        "through DALIGenericIterator; or torchvision.transforms.v2 on GPU tensors after "
        "torchvision.io.decode_jpeg(device='cuda')",
        transformers="give Trainer a data set of encoded bytes and decode in the collator",
        keras="nvidia.dali.plugin.tf.DALIDataset, or augmentation layers inside the model",
    ),
    "offline-preprocessing": _code(
        "decode and resize once, write shards (WebDataset tar, Arrow, TFRecord), read them in "
        "large pieces",
        transformers="dataset.map(..., num_proc=N) once, then save_to_disk",
        keras="tf.data: snapshot or TFRecord files",
    ),
    "local-cache": HowTo(
        by="machine",
        environment={
            "HF_DATASETS_CACHE": "/scratch/cache/datasets",
            "HF_HUB_CACHE": "/scratch/cache/hub",
            "TORCH_HOME": "/scratch/cache/torch",
        },
        words="copy the data set to the scratch disk before the job starts and point the loader "
        "there; tf.data: cache('/scratch/cache')",
    ),
}

_OWN = {
    "environment-workers": HowTo(
        by="code",
        words="Gymnasium: AsyncVectorEnv with one environment a core; Stable-Baselines3: "
        "SubprocVecEnv; RLlib: num_env_runners; EnvPool or an environment on the GPU (Isaac Lab, "
        "Brax) where there is one",
    ),
    "gpu-sampling": HowTo(
        by="code",
        words="DGL: DataLoader(graph, ids, sampler, device='cuda', use_uva=True, num_workers=0); "
        "PyG: NeighborLoader over cuGraph-PyG",
    ),
    "device-data": HowTo(
        by="code",
        words="XGBoost: QuantileDMatrix from CuPy or cuDF arrays with device='cuda'; "
        "ExtMemQuantileDMatrix where the data exceed the GPU; LightGBM: device_type=cuda",
    ),
}

_STEP = {
    "compile": _code(
        "model = torch.compile(model); look at torch._dynamo.explain for graph breaks",
        lightning="torch.compile(module) before Trainer.fit",
        transformers="TrainingArguments(torch_compile=True)",
        accelerate="Accelerator(dynamo_backend='inductor')",
        keras="model.compile(..., jit_compile=True)",
        words="assert that a graph was captured: Module.compile() on a bare Sequential captured "
        "nothing, silently",
    ),
    "cuda-graphs": _code(
        "torch.cuda.make_graphed_callables(model, sample), or torch.compile(mode="
        "'reduce-overhead'), which also compiles",
        lightning="make_graphed_callables on the inner modules",
        words="fixed shapes; no .item() or print of GPU values in the step",
    ),
    "fused-optimizer": _code(
        "torch.optim.AdamW(..., fused=True)",
        transformers="TrainingArguments(optim='adamw_torch_fused')",
        keras="jit_compile=True fuses the update",
    ),
    "checkpoint-interval": _code(
        "write every N seconds, not every so many steps; torch.distributed.checkpoint.async_save "
        "keeps writing off the step",
        lightning="ModelCheckpoint(train_time_interval=timedelta(seconds=N))",
        transformers="TrainingArguments(save_strategy='steps', save_steps=N / step time)",
        keras="keras.callbacks.BackupAndRestore(save_freq=N / step time)",
        jax="orbax.checkpoint.CheckpointManager, asynchronous, every N / step time steps",
    ),
    "mixed-precision": _code(
        "with torch.autocast('cuda', dtype=torch.bfloat16): forward and loss only; before Ampere "
        "torch.float16, with torch.amp.GradScaler",
        lightning="Trainer(precision='bf16-mixed'), before Ampere '16-mixed'",
        transformers="TrainingArguments(bf16=True), before Ampere fp16=True",
        accelerate="accelerate launch --mixed_precision bf16",
        keras="keras.mixed_precision.set_global_policy('mixed_bfloat16')",
        jax="flax.linen.Module(dtype=jnp.bfloat16, param_dtype=jnp.float32); jmp for a policy with "
        "loss scaling before Ampere",
        environment={"GPUCOST_PRECISION": "amp-{dtype}"},
    ),
    "tf32": HowTo(
        by="launcher",
        environment={"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"},
        frameworks={
            "pytorch": "torch.set_float32_matmul_precision('high')",
            "lightning": "torch.set_float32_matmul_precision('high') before Trainer.fit",
            "transformers": "TrainingArguments(tf32=True)",
            "accelerate": _SAME,
            "keras": "on by default: tf.config.experimental.enable_tensor_float_32_execution(True)",
        },
    ),
    "larger-batch": _code(
        "batch_size=N; search by doubling until it no longer fits",
        lightning="Tuner(trainer).scale_batch_size(model, mode='binsearch')",
        transformers="TrainingArguments(per_device_train_batch_size=N, auto_find_batch_size=True)",
        accelerate="accelerate.utils.find_executable_batch_size",
        keras="model.fit(batch_size=N)",
        jax="the loader's batch size N",
        words="scale the learning rate with the batch and warm it up; LARS or LAMB from some "
        "thousands on",
    ),
    "gradient-accumulation": _code(
        "step the optimiser every N micro-batches, with model.no_sync() in between",
        lightning="Trainer(accumulate_grad_batches=N)",
        transformers="TrainingArguments(gradient_accumulation_steps=N)",
        accelerate="Accelerator(gradient_accumulation_steps=N) and accumulate(model)",
        keras="optimizer(..., gradient_accumulation_steps=N)",
        jax="optax.MultiSteps(optimizer, every_k_schedule=N)",
    ),
    "gradient-checkpointing": _code(
        "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
        transformers="TrainingArguments(gradient_checkpointing=True)",
        accelerate="model.gradient_checkpointing_enable()",
        keras="keras.remat around blocks",
        jax="jax.checkpoint around blocks",
    ),
    "channels-last": _code(
        "model.to(memory_format=torch.channels_last), and the input batches as well",
        keras="channels_last is the default",
    ),
    "allocator-tuning": HowTo(
        by="launcher",
        environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        words="torch.cuda.memory_summary() shows reserved against allocated; TensorFlow: "
        "TF_GPU_ALLOCATOR=cuda_malloc_async",
    ),
}

_SERVING = {
    "kv-cache-room": HowTo(
        by="code",
        words="vLLM: --gpu-memory-utilization 0.95, --max-model-len and --max-num-seqs to what the "
        "requests need, --kv-cache-dtype fp8, --tensor-parallel-size N; SGLang: "
        "--mem-fraction-static; watch vllm:kv_cache_usage_perc and vllm:num_preemptions_total",
    ),
    "quantization": HowTo(
        by="code",
        words="vLLM: --quantization fp8; TensorRT: an INT8 or FP8 engine with calibration data; "
        "PyTorch: torchao.quantize_; compare accuracy on your own set",
    ),
    "pruning": HowTo(
        by="code",
        words="torch.nn.utils.prune, or 2:4 sparsity with torch.sparse.to_sparse_semi_structured, "
        "then fine-tune and compare accuracy",
    ),
    "dynamic-batching": HowTo(
        by="code",
        words="Triton: dynamic_batching { max_queue_delay_microseconds }; Ray Serve: "
        "@serve.batch(max_batch_size=N, batch_wait_timeout_s); vLLM batches by itself",
    ),
}

_TOGETHER = {
    "data-parallel": HowTo(
        by="code",
        launcher={"nproc_per_node": "GPUs of a machine"},
        frameworks={
            "pytorch": "torchrun --nproc-per-node=N --max-restarts=R --rdzv-backend=c10d, "
            "DistributedDataParallel(model), DistributedSampler with set_epoch; --nnodes=MIN:MAX "
            "lets machines come and go; resume from the last checkpoint",
            "lightning": "Trainer(devices=N, strategy='ddp')",
            "transformers": "torchrun --nproc-per-node=N train.py",
            "accelerate": "accelerate launch --multi_gpu --num_processes N",
            "keras": "keras.distribution.DataParallel()",
        },
    ),
    "sharded-data-parallel": HowTo(
        by="code",
        launcher={"nproc_per_node": "GPUs of a machine"},
        frameworks={
            "pytorch": "torchrun --nproc-per-node=N --max-restarts=R, "
            "torch.distributed.fsdp.fully_shard(module) for each block",
            "lightning": "Trainer(strategy='fsdp')",
            "transformers": "TrainingArguments(fsdp='full_shard auto_wrap')",
            "accelerate": "accelerate launch --use_fsdp",
        },
    ),
    "tensor-parallel": HowTo(
        by="code",
        frameworks={
            "pytorch": "torch.distributed.tensor.parallel.parallelize_module over one machine",
            "lightning": "ModelParallelStrategy(tensor_parallel_size=N)",
            "transformers": "from_pretrained(tp_plan='auto')",
            "keras": "keras.distribution.ModelParallel with a LayoutMap",
        },
    ),
    "pipeline-parallel": HowTo(
        by="code",
        frameworks={"pytorch": "torch.distributed.pipelining: cut stages of equal time"},
    ),
    "numa-binding": HowTo(
        by="launcher",
        launcher={"numa": "auto"},
        words="numactl --cpunodebind=NODE --membind=NODE for each process; nvidia-smi topo -m "
        "names the node of each GPU",
    ),
    "nccl-tuning": HowTo(
        by="launcher",
        environment={"NCCL_DEBUG": "INFO"},
        words="read in the log which links it uses; NCCL_SOCKET_IFNAME and NCCL_IB_HCA choose the "
        "right interfaces, larger buckets (DistributedDataParallel(bucket_cap_mb=100)) save calls",
    ),
}

_MACHINES = {
    "end-job": HowTo(
        by="machine",
        environment={"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"},
        words="end every process of the job, then start it from the last checkpoint; PyTorch ends "
        "a collective that hangs after init_process_group(timeout=...), 10 min by default; "
        "torchrun --max-restarts starts it again",
    ),
    "idle-shutdown": _machine("end the machine when its GPUs were idle for half an hour"),
    "newer-gpu": _machine("gpucost plan compares machines; take the one it recommends"),
    "smaller-gpu": _machine("gpucost plan --gpu MODEL; check memory and latency first"),
    "fewer-gpus": _machine("gpucost plan --gpus N; start as many processes as GPUs work"),
    "more-gpus": _machine("gpucost plan --gpus N..M; serving: one replica a GPU"),
    "share-gpu": _machine(
        "gpucost plan JOB JOB ... packs them; nvidia-cuda-mps-control -d on the machine, or MIG "
        "slices where tenants do not trust each other"
    ),
    "spot": _machine("gpucost plan --purchase spot; checkpoints and a restart on interruption"),
    "commit": _machine("gpucost plan --purchase reserved_1y; from which use a term pays"),
    "move-provider": _machine("gpucost plan names the machine; data moves once, see its cost"),
    "scale-down": _machine(
        "set the replicas to the demand; scale on queue length, not on GPU-Util"
    ),
    "reduce-egress": _machine("keep readers in the region of the data; compress; cache"),
}

HOW_TO: Mapping[str, HowTo] = {**_LOADER, **_OWN, **_STEP, **_SERVING, **_TOGETHER, **_MACHINES}

"""The models beside published runs: how far off they are, in bands that were measured, not tuned.

The model is a bound with attained rates for large matmuls: everything inside an operator overlaps,
and nothing is lost between operators. So times come out short. The bands say by how much, and a
change that moves a figure out of its band has to be explained.
"""

import numpy as np
import pytest

from models.hardware.catalog import chips_named
from models.hardware.cluster import Cluster
from models.performance.inference import decode, prefill
from models.performance.machine import machine
from models.performance.pipeline import stage_parameters
from models.performance.training import Fleet, train
from models.workload.catalog import model_named
from models.workload.recipes import recipe_named
from models.workload.tasks import ServingTask, TrainingTask
from models.workload.training import model_flops_per_token
from models.workload.transformer import Transformer

CLUSTER = Cluster(domain=8, network="infiniband-ndr")
BF16 = recipe_named("training", "bf16")
H100_PEAK = 989.4e12


@pytest.fixture(scope="module")
def on(tech):
    return lambda name: machine(chips_named([name], tech), CLUSTER, tech, 1e6)


def gpt(hidden, layers, heads, vocab) -> Transformer:
    return Transformer(
        name=f"gpt-{hidden}",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=4 * hidden,
        vocab=vocab,
        gated_mlp=False,
        tied_embeddings=True,
    )


def mfu(result, task, gpus) -> float:
    flops = model_flops_per_token(task.model, task.seq_len) * task.global_batch_tokens
    return float(flops / result.seconds[0] / gpus / H100_PEAK)


# --- Llama-3.1-405B on 16,384 H100: 400 TFLOP/s per GPU, 41% MFU with TP 8, PP 16, 16 M tokens in
# sequences of 8,192 (arXiv:2407.21783, table 4). Our FLOPs count attention's causal half only; all
# of it would be 4% more.
LLAMA = TrainingTask(
    model=model_named("llama-3.1-405b"),
    global_batch_tokens=16_777_216,
    seq_len=8192,
    training_tokens=15.6e12,
)


def test_llama_405b_mfu(on):
    """40% against 41%, by two errors that cancel.

    80 GB do not hold 16 micro-batches of activations without recomputation in the model, so it
    recomputes, which costs a quarter; Meta freed tensors by hand and did not. Without that the
    model is 1.25 to 1.4 times too fast; see the next test.
    """
    result = train(on("h100"), LLAMA, Fleet(chips=16384), BF16)
    assert result.feasible[0]
    assert result.mapping["recompute"][0] == 1
    assert mfu(result, LLAMA, 16384) == pytest.approx(0.40, abs=0.03)
    assert 0.85 < mfu(result, LLAMA, 16384) / 0.41 < 1.15
    # 15.6 T tokens: about 70 days without interruptions at the published rate.
    assert 60 < result.seconds[0] * LLAMA.steps / 86400 < 80


@pytest.mark.parametrize(("virtual", "low", "high"), [(4, 0.48, 0.54), (8, 0.53, 0.59)])
def test_llama_405b_at_its_own_mapping(on, virtual, low, high):
    """TP 8, PP 16 without recomputation: 51 to 56% were there memory for it, against 41%."""
    pinned = {"tp": 8, "pp": 16, "micro_batch": 1, "recompute": 0, "virtual_stages": virtual}
    result = train(on("h100"), LLAMA, Fleet(chips=16384), BF16, pinned)
    assert result.mapping["dp"][0] == 128
    assert 80e9 < result.memory_bytes[0] < 110e9
    assert low < mfu(result, LLAMA, 16384) < high


# --- Korthikanti et al. (arXiv:2205.05198), table 5: A100-80GB, fp16, sequence 2,048, one replica.
# Attention was not fused then, so the model has less to do than the measured runs.
KORTHIKANTI = {
    # hidden, layers, heads; TP, PP, v; GPUs, sequences, micro-batch; seconds with full
    # recomputation, and with sequence parallelism and selective; GiB of parameters and optimizer.
    "22B": (6144, 48, 64, 8, 1, 1, 8, 4, 4, 1.42, 1.10, 45.56),
    "175B": (12288, 96, 96, 8, 8, 3, 64, 64, 1, 18.13, 13.75, 45.56),
    "530B": (20480, 105, 128, 8, 35, 3, 280, 280, 1, 49.05, 37.83, 31.64),
    "1T": (25600, 128, 160, 8, 64, 1, 512, 512, 1, 94.42, 71.49, 32.96),
}


@pytest.mark.parametrize("name", KORTHIKANTI)
def test_korthikanti_step_times(on, name):
    """0.66 to 0.81 of the measured times: 0.69 to 0.81 with full recomputation."""
    hidden, layers, heads, tp, pp, v, gpus, batch, micro, full, selective, _ = KORTHIKANTI[name]
    task = TrainingTask(
        model=gpt(hidden, layers, heads, 51200),
        global_batch_tokens=batch * 2048,
        seq_len=2048,
        training_tokens=1e12,
    )
    pinned = {"tp": tp, "pp": pp, "virtual_stages": v, "micro_batch": micro}
    for recompute, measured in ((1, full), (0, selective)):
        result = train(on("a100"), task, Fleet(chips=gpus), BF16, pinned | {"recompute": recompute})
        assert result.feasible[0]
        assert 0.62 < result.seconds[0] / measured < 0.85


@pytest.mark.parametrize("name", KORTHIKANTI)
def test_korthikanti_parameter_memory(name):
    """18 bytes a parameter on the fullest chip, within 10% of figure 1."""
    hidden, layers, heads, tp, pp, *_, gib = KORTHIKANTI[name]
    model = gpt(hidden, layers, heads, 51200)
    parameters = stage_parameters(model, np.array(float(tp)), np.array(float(pp)))
    assert 18 * float(parameters) / 2**30 == pytest.approx(gib, rel=0.10)


# --- Megatron Core on H100, bf16, sequence 4,096, vocabulary 131,072, 48 replicas (its README).
@pytest.mark.parametrize(
    ("hidden", "layers", "heads", "tp", "pp", "gpus", "batch", "measured", "modelled"),
    [
        (4096, 30, 32, 2, 1, 96, 192, 0.471, 0.73),
        (7168, 48, 56, 8, 1, 384, 192, 0.465, 0.42),
        (8192, 84, 64, 8, 2, 768, 384, 0.424, 0.44),
        (12288, 96, 96, 8, 6, 2304, 1152, 0.437, 0.56),
    ],
)
def test_megatron_core_mfu(on, hidden, layers, heads, tp, pp, gpus, batch, measured, modelled):
    """0.90 to 1.56 of the measured MFU; the low one shows reduction that Megatron hides better."""
    task = TrainingTask(
        model=gpt(hidden, layers, heads, 131072),
        global_batch_tokens=batch * 4096,
        seq_len=4096,
        training_tokens=1e12,
    )
    pinned = {"tp": tp, "pp": pp, "recompute": 0}
    result = train(on("h100"), task, Fleet(chips=gpus), BF16, pinned)
    assert result.feasible[0]
    found = mfu(result, task, gpus)
    assert found == pytest.approx(modelled, abs=0.03)
    assert 0.85 < found / measured < 1.6


# --- NVIDIA dgxc-benchmarking, Llama-3.1-70B, H100, bf16, two sequences of 8,192 per GPU: seconds.
@pytest.mark.parametrize(("gpus", "measured"), [(64, 14.61), (512, 14.80), (2048, 14.84)])
def test_llama_70b_step(on, gpus, measured):
    task = TrainingTask(
        model=model_named("llama-3.1-70b"),
        global_batch_tokens=2 * gpus * 8192,
        seq_len=8192,
        training_tokens=1e12,
    )
    result = train(on("h100"), task, Fleet(chips=gpus), BF16)
    assert 0.70 < result.seconds[0] / measured < 0.85


# --- TensorRT-LLM v1.0 performance overview, Llama-3.1-8B in fp8, one GPU: output tokens/s.
TENSORRT = [
    # prompt, output, H100, H200
    (128, 2048, 22714, 26221),
    (128, 4096, 14325, 18027),
    (500, 2000, 17660, 20770),
    (1000, 1000, 15220, 17744),
    (1000, 2000, 13899, 16828),
    (2048, 2048, 9305, 12194),
    (5000, 500, 3459, 3902),
    (20000, 2000, 1351, 1804),
]
ONE_GPU = {"tp": 1, "pp": 1}
FP8 = recipe_named("serving", "fp8")


def output_rate(one, prompt, output) -> float:
    """Prefill and decode share the GPU: their seconds per output token add."""
    task = ServingTask(
        model=model_named("llama-3.1-8b"),
        prompt_tokens=prompt,
        output_tokens=output,
        tpot_s=10,
        ttft_s=1000,
    )
    prompts, outputs = prefill(one, task, FP8, ONE_GPU), decode(one, task, FP8, ONE_GPU)
    return 1 / (prompt / output / prompts.tokens_per_s[0] + 1 / outputs.tokens_per_s[0])


@pytest.mark.parametrize(("prompt", "output", "h100", "h200"), TENSORRT)
def test_serving_throughput(on, prompt, output, h100, h200):
    """1.08 to 1.37 of the measured rates, and the step from H100 to H200 within 16%.

    The two differ in HBM alone, so the step isolates bandwidth and capacity. Not shown: outputs of
    128 tokens, where 1.4 to 1.7 times are modelled, since scheduling is not.
    """
    modelled = [output_rate(on(name), prompt, output) for name in ("h100", "h200")]
    for found, measured in zip(modelled, (h100, h200)):
        assert 1.0 < found / measured < 1.45
    assert modelled[1] / modelled[0] == pytest.approx(h200 / h100, rel=0.16)
    assert modelled[1] > modelled[0]


def test_decode_follows_bandwidth_from_h100_to_h200(on):
    """At a batch that is memory-bound on both: 4.8 over 3.35 TB/s, less what is not HBM."""
    task = ServingTask(
        model=model_named("llama-3.1-8b"), prompt_tokens=2048, output_tokens=512, tpot_s=1, ttft_s=9
    )
    small = ONE_GPU | {"batch": 16}
    h100, h200 = (decode(on(name), task, FP8, small) for name in ("h100", "h200"))
    assert h100.binding(0) == h200.binding(0) == "hbm"
    gain = h100.seconds[0] / h200.seconds[0]
    assert 1.35 < gain <= 4.8 / 3.35 + 1e-9
    # Compute-bound prefill gains nothing.
    prompts = [prefill(on(name), task, FP8, ONE_GPU).tokens_per_s[0] for name in ("h100", "h200")]
    assert prompts[1] / prompts[0] == pytest.approx(1, abs=0.03)

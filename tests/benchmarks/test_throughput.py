"""How many designs, each with all its mappings, evaluate() gets through in a second."""

from time import perf_counter

import numpy as np
import pytest

from models.evaluate import PHASES, Problem, evaluate
from models.hardware.budget import Allocation, Budget, allocate
from models.hardware.chip import Chips
from models.hardware.cluster import Cluster
from models.hardware.technology import Technology
from models.performance.training import Fleet
from models.workload.catalog import model_named
from models.workload.tasks import ServingTask, TrainingTask

DESIGNS = 4096
ALONE = 64


def random_designs(count: int, tech: Technology) -> Chips:
    """Return designs such as a search proposes, most of which are feasible for something."""
    rng = np.random.default_rng(1)
    allocation = Allocation(
        die_mm2=rng.uniform(300, 858, count),
        power_w=rng.uniform(200, 700, count),
        style=np.zeros(count, dtype=np.int64),
        datapath=rng.integers(0, 3, count),
        rows=rng.integers(1, 64, count) * 4.0,
        cols=rng.integers(1, 64, count) * 4.0,
        hbm_type=rng.integers(2, 5, count),
        stacks=rng.integers(0, 7, count).astype(float),
        link_type=np.ones(count, dtype=np.int64),
        lanes=rng.integers(0, 40, count).astype(float),
        sram_share=rng.uniform(0.01, 0.9, count),
        volts=rng.uniform(0.6, 0.9, count),
        hbm_power_share=rng.uniform(0.5, 1, count),
    )
    return allocate(Budget(858, 700, "n5"), allocation, tech)[0]


@pytest.mark.benchmark
def test_designs_per_second():
    tech = Technology.default()
    problem = Problem(
        training=TrainingTask(
            model=model_named("llama-3.1-405b"),
            global_batch_tokens=16_777_216,
            seq_len=8192,
            training_tokens=15.6e12,
        ),
        serving=ServingTask(
            model=model_named("llama-3.1-70b"),
            prompt_tokens=2048,
            output_tokens=512,
            tpot_s=0.02,
            ttft_s=1.0,
        ),
        cluster=Cluster(domain=8, network="infiniband-ndr"),
        fleet=Fleet(megawatts=18),
        volume=1e6,
        tech=tech,
    )
    chips = random_designs(DESIGNS, tech)
    warm = evaluate(chips[:ALONE], problem)
    mappings = sum(int(getattr(warm, phase).mappings_tried[0]) for phase in PHASES)

    start = perf_counter()
    evaluate(chips, problem)
    together = DESIGNS / (perf_counter() - start)
    start = perf_counter()
    for i in range(ALONE):
        evaluate(chips[i : i + 1], problem)
    alone = ALONE / (perf_counter() - start)

    print()
    for what, rate in (("array at a time", together), ("one at a time", alone)):
        print(f"{what:16s} {rate:8,.0f} designs/s  {rate * mappings / 1e6:6.2f} M mappings/s")
    print(f"ratio            {together / alone:8.1f}")
    assert together >= 3 * alone

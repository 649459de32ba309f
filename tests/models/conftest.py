"""What the tests of models/ share: the technology, one hand-made chip, random chips, a problem."""

from collections.abc import Callable

import numpy as np
import pytest

from models.evaluate import Problem
from models.hardware.chip import Chips
from models.hardware.cluster import Cluster
from models.hardware.technology import HBM_TYPES, LINK_TYPES, NODES, STYLES, Technology
from models.performance.training import Fleet
from models.workload.catalog import model_named
from models.workload.tasks import ServingTask, TrainingTask
from models.workload.transformer import Transformer


@pytest.fixture(scope="session")
def tech() -> Technology:
    return Technology.default()


@pytest.fixture(scope="session")
def ideal(tech: Technology) -> Technology:
    """The technology with every rate attained and no memory reserved, for sums by hand."""
    return tech.with_values(
        {"attained.compute": 1, "attained.hbm": 1, "attained.link": 1, "memory.reserve": 0}
    )


@pytest.fixture(scope="session")
def tiny() -> Transformer:
    return Transformer(
        name="tiny", layers=4, hidden=256, heads=4, kv_heads=2, head_dim=64, ffn=512, vocab=1000
    )


@pytest.fixture(scope="session")
def make_chip() -> Callable[..., Chips]:
    """Return one chip of round figures, any column of which may be given instead."""

    def make(**given: float) -> Chips:
        columns: dict[str, float] = {
            "die_mm2": 400,
            "dies": 1,
            "rows": 128,
            "cols": 128,
            "arrays": 4,
            "fabricated": 4,
            "volts": 0.8,
            "clock_hz": 1e9,
            "sram_bytes": 64e6,
            "stacks": 2,
            "sites": 2,
            "hbm_bytes": 32e9,
            "hbm_bytes_per_s": 1e12,
            "link_bytes_per_s": 100e9,
            "power_w": 1000,
        }
        codes = {"node": 1, "style": 0, "datapath": 0, "hbm_type": 3, "link_type": 1}
        assert given.keys() <= columns.keys()
        return Chips(
            names=("by hand",),
            rates=np.array([[1.0, 2.0, 2.0]]),
            **{name: np.array([code]) for name, code in codes.items()},
            **{name: np.array([float(value)]) for name, value in (columns | given).items()},
        )

    return make


@pytest.fixture(scope="session")
def random_chips() -> Callable[..., Chips]:
    """Return chips whose columns are independent of each other; `zeros` of each are 0."""

    def make(count: int, seed: int = 0, zeros: float = 0.1) -> Chips:
        rng = np.random.default_rng(seed)

        def spread(low: float, high: float, share: float = zeros) -> np.ndarray:
            values = np.exp(rng.uniform(np.log(low), np.log(high), count))
            return np.where(rng.random(count) < share, 0.0, values)

        def code(choices: tuple[str, ...]) -> np.ndarray:
            return rng.integers(0, len(choices), count)

        def side() -> np.ndarray:
            return rng.choice([4.0, 12.0, 16.0, 32.0, 60.0, 128.0, 256.0], count)

        arrays = np.floor(spread(1, 2000))
        stacks = np.floor(spread(1, 9))
        rates = np.array([[1, 2, 2], [1, 0, 2], [1, 0, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]])
        return Chips(
            names=tuple(f"random {i}" for i in range(count)),
            node=code(NODES),
            style=code(STYLES),
            datapath=rng.integers(0, 3, count),
            hbm_type=code(HBM_TYPES),
            link_type=code(LINK_TYPES),
            die_mm2=spread(50, 900, 0.0),
            dies=rng.integers(1, 5, count).astype(float),
            rows=side(),
            cols=side(),
            arrays=arrays,
            fabricated=np.ceil(arrays * rng.uniform(1, 1.2, count)),
            rates=rates[rng.choice(6, count, p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1])].astype(float),
            volts=rng.uniform(0.5, 0.9, count),
            clock_hz=spread(3e8, 2.5e9, zeros / 3),
            sram_bytes=spread(1e5, 2e10),
            stacks=stacks,
            sites=stacks,
            hbm_bytes=spread(1e9, 4e11),
            hbm_bytes_per_s=spread(1e11, 2e13),
            link_bytes_per_s=spread(1e10, 2e12),
            power_w=spread(30, 2000, 0.0),
        )

    return make


@pytest.fixture(scope="session")
def problem(tech: Technology) -> Problem:
    """Train and serve an 8-billion-parameter model in bf16 or fp8."""
    model = model_named("llama-3.1-8b")
    return Problem(
        training=TrainingTask(
            model=model,
            global_batch_tokens=4_194_304,
            seq_len=8192,
            training_tokens=15e12,
            recipes=("bf16", "fp8"),
        ),
        serving=ServingTask(
            model=model,
            prompt_tokens=2048,
            output_tokens=512,
            tpot_s=0.05,
            ttft_s=2.0,
            recipes=("bf16", "fp8"),
        ),
        cluster=Cluster(domain=8, network="infiniband-ndr"),
        fleet=Fleet(megawatts=1.0),
        volume=1e6,
        tech=tech,
    )

"""One chip's phase operator by operator: where the time goes and what bounds each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.performance.machine import Machine
from models.performance.operator import BOUNDS, operator_times
from models.workload.operators import Operators
from models.workload.recipes import Recipe

__all__ = ["OperatorRow", "operator_rows"]


@dataclass(frozen=True)
class OperatorRow:
    """One operator over all its repetitions, on one chip.

    Attributes
    ----------
    name : str
    repeat : float
    m, k, n, parallel : float
        One matmul and how many of it at once; zeros for a vector operator.
    seconds : float
        The largest of the three below.
    compute_s, vector_s, hbm_s : float
    bound : str
        One of :data:`models.performance.operator.BOUNDS`.
    flops, hbm_bytes : float
    utilization : float
        Matrix FLOPs over what the arrays could do in `seconds`; 0 for a vector operator.
    """

    name: str
    repeat: float
    m: float
    k: float
    n: float
    parallel: float
    seconds: float
    compute_s: float
    vector_s: float
    hbm_s: float
    bound: str
    flops: float
    hbm_bytes: float
    utilization: float


def operator_rows(machine: Machine, ops: Operators, recipe: Recipe) -> list[OperatorRow]:
    """Return the operators of a table with a single point, on a single chip, in their order."""
    rows = []
    times = operator_times(machine, ops, recipe)
    shape = times.hbm_bytes.shape
    columns = [
        np.broadcast_to(column, shape).reshape(len(ops.names))
        for column in (times.compute_s, times.vector_s, times.hbm_s, times.hbm_bytes)
    ]
    for i, name in enumerate(ops.names):
        repeat, m, k, n, parallel, flops = (
            float(np.ravel(column[i])[0])
            for column in (ops.repeat, ops.m, ops.k, ops.n, ops.parallel, ops.flops)
        )
        *each, hbm_bytes = (float(column[i]) * repeat for column in columns)
        seconds = max(each)
        number_format = recipe.attention_format if ops.attention[i] else recipe.matmul_format
        peak = float(2 * machine.chips.elements[0] * machine.chips.clock_hz[0])
        peak *= float(machine.rate(number_format)[0])
        possible = peak * seconds
        rows.append(
            OperatorRow(
                name=name,
                repeat=repeat,
                m=m,
                k=k,
                n=n,
                parallel=parallel,
                seconds=seconds,
                compute_s=each[0],
                vector_s=each[1],
                hbm_s=each[2],
                bound=BOUNDS[int(np.argmax(each))],
                flops=flops,
                hbm_bytes=hbm_bytes,
                utilization=flops / possible if 0 < possible < np.inf else 0.0,
            )
        )
    return rows

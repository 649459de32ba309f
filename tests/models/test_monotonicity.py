"""Growing one thing alone never makes a chip dearer or slower at its best mapping.

Why each holds: no mapping's time, energy or memory rises, so neither does the minimum of dollars.
The cost of the thing itself is taken out of the technology, since a larger HBM or link is dearer
and may well not pay; clock and bandwidths cost nothing by themselves in these models. Energy per
operation stays as it is, and average throttling of a power-limited phase is monotone as well, so
the power limit may bind. Links have a further condition: from none to some, the domain is used
where the network was, so the property starts from some.
"""

from dataclasses import replace

import numpy as np
import pytest

from models.evaluate import PHASES, evaluate

FREE = {
    "clock_hz": {},
    "hbm_bytes_per_s": {},
    "link_bytes_per_s": {
        f"link.{kind}.{what}": 0.0
        for kind in ("serdes-50g", "serdes-112g")
        for what in ("pj_per_bit", "mm2_per_tbps")
    }
    | {"scaleup.switch_pj_per_bit": 0.0, "scaleup.usd_per_gbytes_per_s": 0.0},
    "sram_bytes": {"sram.mm2_per_mb.n7": 0.0, "sram.mm2_per_mb.n5": 0.0},
    "hbm_bytes": {"cost.hbm_usd_per_gb": 0.0},
    "power_w": {"datacentre.usd_per_w": 0.0},
}


@pytest.mark.parametrize("factor", [1.01, 1.5, 10.0])
@pytest.mark.parametrize("what", FREE)
def test_more_is_never_dearer(random_chips, problem, what, factor):
    problem = replace(problem, tech=problem.tech.with_values(FREE[what]))
    if what == "power_w":
        # A fleet of fixed megawatts buys fewer chips of more watts; a fixed number does not.
        problem = replace(problem, fleet=type(problem.fleet)(chips=512))
    chips = random_chips(120, seed=17)
    grown = replace(chips, **{what: getattr(chips, what) * factor})
    before, after = evaluate(chips, problem), evaluate(grown, problem)
    for phase in PHASES:
        old, new = getattr(before, phase), getattr(after, phase)
        assert (new.usd <= old.usd * (1 + 1e-12)).all(), phase
        assert (new.feasible >= old.feasible).all()
        assert (new.mappings_feasible >= old.mappings_feasible).all()
        both = old.feasible
        assert both.sum() > 10
    # Not vacuous: someone gains.
    gains = [np.any(getattr(after, p).usd < getattr(before, p).usd * (1 - 1e-6)) for p in PHASES]
    assert factor < 1.1 or any(gains)

"""Numbers of the decode frontier that exist only where the scenario fits in HBM: a page shows the reason in their place."""

from __future__ import annotations

from typing import Any

from inside_deepinfer.facts import CATALOGUE, derived
from inside_deepinfer.serving import capacity, decode_frontier  # noqa: F401  (register what is used)

NAMES = ("throughput_per_decode_gpu", "throughput_per_cluster_gpu", "modelled_user_speed", "decode_step_time", "inter_token_latency")


def _register(name: str) -> None:
    def number(value: Any, fits: Any) -> Any:
        return value

    number.__doc__ = "As the number it is called after; a scenario that does not fit in HBM has none."
    entry = CATALOGUE[name]
    derived(name=f"fitting_{name}", label=f"{entry.label}, if the scenario fits in HBM", unit=entry.unit, formula=name, words=True,
            listed=False, uses={"value": name, "fits": "fitting_batch"})(number)


for _name in NAMES:
    _register(_name)

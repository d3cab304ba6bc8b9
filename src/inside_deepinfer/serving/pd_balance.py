"""How well a ratio of prefill to decode cards fits a workload, in closed form, and what hiding CPU work is worth."""

from __future__ import annotations

from typing import Any

import numpy as np

from inside_deepinfer.facts import derived, require_not_negative, require_positive


@derived(label="share of the cards that the ratio keeps busy", unit="ratio", words=True,
         formula="smaller of pd_ratio / balanced_pd_ratio and 1, * (1 + balanced_pd_ratio) / (1 + pd_ratio)")
def pool_use(pd_ratio: Any, balanced_pd_ratio: Any) -> Any:
    """Requests per second at this ratio over those of the same cards at the right ratio; 1 where neither pool waits."""
    ratio, right = require_positive("pd_ratio", pd_ratio), require_positive("balanced_pd_ratio", balanced_pd_ratio)
    return np.minimum(ratio / right, 1.0) * (1 + right) / (1 + ratio)


@derived(label="prefill GPUs beside one decode instance", unit="GPU", formula="pd_ratio * ep")
def prefill_gpus_beside_instance(pd_ratio: Any, ep: Any) -> Any:
    """A decode instance cannot be divided, so this and the instance are the smallest cluster with full pools."""
    return require_positive("pd_ratio", pd_ratio) * require_positive("ep", ep)


@derived(label="step time with CPU work in the open", unit="s", formula="step_time + cpu", uses={"cpu": "pd.cpu_time"})
def step_time_cpu_open(step_time: Any, cpu: Any) -> Any:
    """The GPU waits while the CPU plans."""
    return require_positive("step_time", step_time) + require_not_negative("pd.cpu_time", cpu)


@derived(label="gain of hiding CPU work", unit="ratio", words=True, uses={"cpu": "pd.cpu_time"},
         formula="step_time_cpu_open over the longer of step_time and CPU work")
def gain_of_hidden_cpu(step_time_cpu_open: Any, step_time: Any, cpu: Any) -> Any:
    """Tokens per second with the next step planned during this one, over those with planning in between."""
    return step_time_cpu_open / np.maximum(step_time, cpu)

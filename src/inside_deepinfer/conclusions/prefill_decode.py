"""What chapter 12 concludes."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.scenario import make_scenario
from inside_deepinfer.studies import pd


@conclusion("prefill-decode.one-workload", "The ratio 1:1 is right for one workload only: with half the misses, or with half "
                                           "the input per output, the right ratio is half as large.")
def _one_workload() -> bool:
    published, fewer_misses, less_input = (float(catalogue.value("balanced_pd_ratio", **changes)) for changes in (
        {}, {"hit_rate": 0.98}, {"input_output_ratio": make_scenario().input_output_ratio / 2}))
    return bool(np.allclose([published, fewer_misses, less_input], [1, 0.5, 0.5]))


@conclusion("prefill-decode.simulation-near", "The simulated balance lies a few percent above the line, since reading the cache takes time "
                                              "of a prefill GPU there.")
def _simulation_near() -> bool:
    ratio = pd.simulated_balance(make_scenario(), "published") / float(catalogue.value("balanced_pd_ratio"))
    return 1 < ratio < 1.07


@conclusion("prefill-decode.wrong-ratio", "Four times the input per output leaves more than a third of the cards idle at 1:1.")
def _wrong_ratio() -> bool:
    return float(catalogue.value("pool_use", input_output_ratio=4 * make_scenario().input_output_ratio)) < 2 / 3


@conclusion("prefill-decode.gaps", "At 70 percent load the longest gap of a request is more than four times as long together, and the "
                                   "difference shrinks with the load; the first token comes sooner, since all cards share one prompt.")
def _gaps() -> bool:
    runs, quiet = (pd.runs(make_scenario(), "published", load, 2000) for load in (0.7, 0.3))
    apart, together = runs["apart"], runs["together"]
    longer, less = (np.quantile(run["together"].worst_gap, (0.5, 0.9)) / np.quantile(run["apart"].worst_gap, (0.5, 0.9))
                    for run in (runs, quiet))
    sooner = np.median(together.ttft) < np.median(apart.ttft) and together.ttft.mean() < apart.ttft.mean()
    return bool(longer.min() > 4 and np.all(less < longer) and less.min() > 2 and sooner)


@conclusion("prefill-decode.cpu-hidden", "CPU work in the open lengthens the time per token by somewhat more than its own length over the "
                                         "tokens of a step, since slower steps have more sequences in them. Our simulation delays decode "
                                         "steps only, so the first token is the same.")
def _cpu_hidden() -> bool:
    runs = pd.runs(make_scenario(), "published", 0.5, 2000)
    hidden, seen = runs["apart"], runs["apart, CPU work not hidden"]
    later = np.median(seen.token_gap) - np.median(hidden.token_gap)
    expected = catalogue.value("pd.cpu_time") / make_scenario().tokens_per_step
    return bool(1 < later / expected < 1.3 and np.array_equal(seen.ttft, hidden.ttft))

"""What chapter 17 concludes; nothing here depends on the machine that runs it."""

import numpy as np

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts
from inside_deepinfer.numerics import machine_bits, what_breaks
from inside_deepinfer.numerics.card_bits import FIXED, LIBRARY, bits_table, time_ratio
from inside_deepinfer.numerics.products import fixed_order_product, split_sum


@conclusion("determinism.pieces-differ", "The same numbers, added in another order, end in another float32.")
def _pieces_differ() -> bool:
    values = np.random.default_rng(0).normal(size=4096).astype(np.float32)
    return len({split_sum(values, pieces).tobytes() for pieces in (1, 2, 4, 8, 16)}) > 1


@conclusion("determinism.card-changes-few", "On the H200 the library changes only a few values, and only in large batches; one order of "
                                            "summation changes none in any batch, in both of our runs.")
def _card_changes_few() -> bool:
    fixed = [bits_table(run)["values_changed"][FIXED].max() for run in (load_facts().quantity("bits.run").value, "h200-run2")]
    share = catalogue.value("library_values_changed") / catalogue.value("product_values")
    return fixed == [0, 0] and 0 < share < 0.01 and catalogue.value("first_batch_that_changes") > 64


@conclusion("determinism.price-falls", "The price is highest for few rows: with the sum uncut, one expert's product has too few blocks to "
                                       "fill the card. It disappears at one batch in between, where the library's own time jumps.")
def _price_falls() -> bool:
    run = load_facts().quantity("bits.run").value
    ratio, library = time_ratio(run), bits_table(run)["seconds"][LIBRARY]
    low = ratio.index.get_loc(ratio.idxmin())
    return ratio.idxmax() <= 64 and list(ratio.index[ratio < 1]) == [ratio.idxmin()] and library.iloc[low] > 2 * library.iloc[low - 1]


@conclusion("determinism.same-ids", "With one order of summation and draws from seed and position, order and company of the rows change no "
                                    "id and no bit.")
def _same_ids() -> bool:
    case = machine_bits.make_case(16, 320, 64)
    one, other = (machine_bits.answer(case, order, pieces, fixed_order_product)
                  for order, pieces in ((np.arange(16), 1), (np.arange(16)[::-1], 5)))
    return not machine_bits.ulps(one[0], other[0]).any() and np.array_equal(one[1], other[1])


@conclusion("determinism.rows-break-draws", "If other requests decide how many rows a step has, the draws change although every "
                                            "probability stays the same.")
def _rows_break_draws() -> bool:
    p = np.random.default_rng(0).dirichlet(np.ones(50), size=24)
    return not np.array_equal(what_breaks.sample_in_steps(p, 7, [6] * 4), what_breaks.sample_in_steps(p, 7, [6, 4, 5, 6, 3]))


@conclusion("determinism.copies-break-sums", "If the balancer moves a copy of an expert to another GPU, the sum over a token's experts "
                                             "gets another order and other bits.")
def _copies_break_sums() -> bool:
    outputs = np.random.default_rng(0).normal(size=(6, 512)).astype(np.float32)
    one, other = (what_breaks.combine(outputs, gpu) for gpu in ([0, 0, 1, 2, 2, 3], [0, 1, 1, 2, 3, 3]))
    return bool(machine_bits.ulps(one, other).any())

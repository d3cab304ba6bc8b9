"""What chapter 16 concludes. The tokenizer is imported late: the registry does not need it."""

from typing import Any

from inside_deepinfer import catalogue
from inside_deepinfer.conclusions.registry import conclusion
from inside_deepinfer.facts import load_facts


@conclusion("encoding.same-ids", "On a conversation without control spellings in its messages both ways give the same ids.")
def _same_ids() -> bool:
    from inside_deepinfer.tokens.speed import conversation
    from inside_deepinfer.tokens.vocabulary import encode_whole, full_tokenizer, recipe_encoding

    made = conversation(20, 6000)
    return encode_whole(full_tokenizer(), recipe_encoding().render_conversation(made).prompt) == recipe_encoding().encode(made)


@conclusion("encoding.within-the-bound", "All three speed-ups of the article lie below what its one-thread gain and its threads allow.")
def _within_the_bound() -> bool:
    return all(catalogue.value(f"encode_efficiency_{turns}") < 1 for turns in (20, 200, 400))


@conclusion("encoding.short-ones-gain-little", "The shortest conversation reaches less than a third of that bound, the longer two "
                                               "more than three quarters.")
def _short_ones_gain_little() -> bool:
    short, *longer = (catalogue.value(f"encode_efficiency_{turns}") for turns in (20, 200, 400))
    return short < 1 / 3 and min(longer) > 3 / 4


@conclusion("encoding.long-prompts-cost-more", "In the article's times a character of the longest prompt costs the whole-prompt way "
                                               "half as much again as one of the shortest, and the segment-wise way about half as "
                                               "much.")
def _long_prompts_cost_more() -> bool:
    return 1.4 < catalogue.value("encode_whole_growth") < 1.6 and 0.45 < catalogue.value("encode_segments_growth") < 0.6


@conclusion("encoding.one-long-message", "If one message holds half of the characters, no number of threads is more than twice as "
                                         "fast as one.")
def _one_long_message() -> bool:
    from inside_deepinfer.tokens.segments import even_but_one, parallel_gain

    return max(parallel_gain(even_but_one(messages, 0.5), threads) for messages in (40, 400, 800) for threads in (8, 64, 1024)) < 2.001


@conclusion("encoding.own-one-thread", "With one thread segments were about one and a half to three times as fast as the whole prompt; "
                                       "the article's twofold gain lies between.")
def _own_one_thread() -> bool:
    gains = _own_run().query("threads == 1").ratio
    low, high = load_facts().quantity("api.encode_single_thread").value
    return 1.4 < gains.min() < low <= high < gains.max() < 3.2


@conclusion("encoding.own-threads", "With two threads the gain grew to between three and five for the longer two conversations, over "
                                    "the whole prompt's own one-thread time. The whole prompt took longer in that run, which we cannot "
                                    "explain.")
def _own_threads() -> bool:
    run = _own_run().set_index(["turns", "threads"])
    gains = [run.whole_s[turns, 1] / run.segments_s[turns, 2] for turns in (200, 400)]
    longer = [run.whole_s[turns, 2] / run.whole_s[turns, 1] for turns in (200, 400)]
    return min(gains) > 3.5 and max(gains) < 5 and min(longer) > 1.2


@conclusion("encoding.own-growth", "A character of the longest prompt cost the whole-prompt way more than half as much again as one of "
                                   "the shortest; segment by segment it cost no more.")
def _own_growth() -> bool:
    run = _own_run().query("threads == 1").set_index("turns")
    whole, segments = (run[column] / run.characters for column in ("whole_s", "segments_s"))
    return whole[400] > 1.5 * whole[20] and segments[400] <= segments[20]


def _own_run() -> Any:
    return load_facts().points("encoding-speed")

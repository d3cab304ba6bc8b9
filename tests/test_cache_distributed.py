"""Several files: added up or joined, in one process and on a Dask cluster, with equal answers."""

from __future__ import annotations

import gzip

import pytest
from traces import HAND, line

from inside_deepinfer.cache.distributed import Reading, analyse, analyse_files, analyse_several
from inside_deepinfer.cache.generated_trace import trace_chunks, write_trace
from inside_deepinfer.cache.reuse import LAST_HALF, Definition, Question
from inside_deepinfer.cache.sampling import Sample
from inside_deepinfer.cache.trace_format import NotATrace
from inside_deepinfer.cache.workloads import workload
from inside_deepinfer.facts import InputError, UserError

READING = Reading(kv_bytes=890.0)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """One trace of generated chat, whole and cut into four files."""
    folder = tmp_path_factory.mktemp("parts")
    whole = folder / "whole.jsonl.gz"
    write_trace(whole, trace_chunks(workload("chat"), 120, 128))
    lines = gzip.decompress(whole.read_bytes()).splitlines(keepends=True)
    files = []
    for n in range(4):
        files.append(folder / f"part-{n}.jsonl")
        files[-1].write_bytes(b"".join(lines[n * len(lines) // 4:(n + 1) * len(lines) // 4]))
    return whole, files


@pytest.mark.parametrize("definition", [LAST_HALF, Question().definition])
def test_joined_parts_equal_the_whole(parts, definition):
    whole, files = parts
    question = Question(definition=definition)
    assert analyse_files(files, question, READING, joined=True).as_json() == analyse(whole, question, READING).as_json()


def test_several_questions_in_one_reading_are_answered_like_each_alone(parts):
    whole, _ = parts
    questions = [Question(definition=definition) for definition in (Question().definition, LAST_HALF, Definition(rule="v4.1"))]
    with gzip.open(whole) as upload:  # an open file is read twice for the warm-up
        together = analyse_several(upload, questions, READING)
    assert [report.as_json() for report in together] == [analyse(whole, question, READING).as_json() for question in questions]


def test_separate_files_add_up(parts):
    _, files = parts
    together = analyse_files(files, Question(), READING)
    alone = [analyse(file, Question(), READING) for file in files]
    assert together.requests_seen == sum(report.requests_seen for report in alone)
    assert together.totals.tolist() == sum(report.totals for report in alone).tolist()
    assert together.hit_rate() == pytest.approx(
        sum(report.hit_rate() * report.input_tokens for report in alone) / together.input_tokens)
    assert together.hit_rate() < analyse_files(files, Question(), READING, joined=True).hit_rate()


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="Dask is an optional extra")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("question", [Question(), Question(definition=LAST_HALF), Question(sample=Sample(0.3))])
def test_dask_gives_the_same_to_the_last_digit(parts, cluster, joined, question):
    _, files = parts
    here = analyse_files(files, question, READING, joined=joined)
    there = analyse_files(files, question, READING, joined=joined, dask=cluster.scheduler_address)
    assert there.as_json() == here.as_json()


def test_errors_of_workers_and_addresses_are_user_errors(parts, cluster, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text("nothing\n")
    with pytest.raises(NotATrace, match="bad.jsonl is no trace"):
        analyse_files([*parts[1], bad], Question(), READING, dask=cluster.scheduler_address)
    for address in ("tcp://127.0.0.1:9", "nonsense"):
        with pytest.raises(UserError, match="no Dask scheduler answers"):
            analyse_files(parts[1], Question(), READING, dask=address)


def test_without_dask_the_message_says_what_to_install(parts, monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "distributed":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"inside-deepinfer\[dask\]"):
        analyse_files(parts[1], Question(), READING, dask="tcp://127.0.0.1:8786")


def test_files_that_do_not_fit_together(tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text("\n".join(line(n, 5000, tuple(range(10))) for n in range(3)))
    for joined in (False, True):
        with pytest.raises(InputError, match="block size"):
            analyse_files([HAND, other], Question(), READING, joined=joined)
    with pytest.raises(InputError, match="files"):
        analyse_files([], Question(), READING)


def test_joined_parts_in_the_wrong_order_are_damage(parts):
    """Unlike one file, whose reader refuses too much damage, joined parts only report what does not fit behind the others."""
    _, files = parts
    report = analyse_files([files[1], files[0]], Question(), READING, joined=True)
    assert report.damage.lines > 0 and "time before the request above" in report.damage.reasons

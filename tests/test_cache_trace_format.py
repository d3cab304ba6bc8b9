"""Reading traces: both formats, and everything that is no trace or only nearly one."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc

import numpy as np
import pytest
from traces import HAND, HAND_CSV, line, public

from inside_deepinfer.cache import trace_lines
from inside_deepinfer.cache.distributed import Reading, analyse
from inside_deepinfer.cache.reuse import LAST_HALF, Question
from inside_deepinfer.cache.trace_format import NotATrace, TraceReader, infer_block
from inside_deepinfer.facts import InputError


def read(text: str | bytes, **options):
    """Chunks joined, and the reader, for the content of an upload."""
    raw = text.encode() if isinstance(text, str) else text
    reader = TraceReader(io.BytesIO(raw), **options)
    return list(reader), reader


def requests(chunks):
    return sum(chunk.requests for chunk in chunks)


GOOD = [line(n * 1000, 256, (2 * n, 2 * n + 1)) for n in range(100)]


def with_bad(*bad: str, at: int = 50, **options):
    return read("\n".join([*GOOD[:at], *bad, *GOOD[at:]]), max_damaged=0.5, **options)


def test_both_formats_say_the_same():
    one, other = (analyse(path, Question(), Reading(kv_bytes=1.0)).as_json() for path in (HAND, HAND_CSV))
    assert one == other


@pytest.mark.parametrize("packed", [False, True])
def test_plain_gzip_path_and_upload_say_the_same(tmp_path, packed):
    raw = HAND.read_bytes()
    path = tmp_path / "hand.anything"
    path.write_bytes(gzip.compress(raw, mtime=0) if packed else raw)
    expected = analyse(HAND, Question(), Reading(kv_bytes=1.0)).as_json()
    assert analyse(path, Question(), Reading(kv_bytes=1.0)).as_json() == expected
    assert analyse(io.BytesIO(path.read_bytes()), Question(), Reading(kv_bytes=1.0)).as_json() == expected
    halves = [analyse(source, Question(definition=LAST_HALF), Reading(kv_bytes=1.0)).as_json()
              for source in (path, io.BytesIO(path.read_bytes()))]
    assert halves[0] == halves[1]


def test_block_size_is_inferred_or_given():
    assert read("\n".join(GOOD))[1].block_tokens == 256 // 2
    assert read("\n".join(GOOD), block_tokens=200, max_damaged=1)[1].block_tokens == 200
    assert infer_block(np.array([1000, 5000, 33]), np.array([2, 10, 1])) == 512
    assert infer_block(np.array([1000, 5000, 33]), np.array([63, 313, 3])) == 16
    with pytest.raises(NotATrace, match="no block size explains"):
        infer_block(np.array([1000, 1000, 1000]), np.array([1, 7, 63]))
    for bad in (0, -1, 2.5, 2**21):
        with pytest.raises(InputError, match="block_size"):
            TraceReader(io.BytesIO(b""), block_tokens=bad)


def test_block_size_of_public_traces():
    for name in ("mooncake_conversation.jsonl.gz", "mooncake_synthetic.jsonl.gz"):
        reader = TraceReader(public(name))
        assert requests(reader) and reader.block_tokens == 512 and reader.damage.lines == 0


@pytest.mark.parametrize(("bad", "reason"), [
    ("{not json", "not JSON"), ("[" * 5000, "not JSON"), ("1, 2", "not JSON"), ('{"a": 1},{"b": 2}', "not JSON"),
    ("[1, 2]", "not a request"), ("5", "not a request"), ('"text"', "not a request"), ("null", "not a request"), ("{}", "not a request"),
    (line(ids=None), "not a request"), (line(ids="abc"), "not a request"), (line(ids={"a": 1}), "not a request"),
    (line(ids=[None]), "not a request"), (line(ids=[[1]]), "not a request"), (line(ids=[1.5]), "not a request"),
    (line(time="soon"), "not a request"), (line(time=[1]), "not a request"), (line(length=1.5), "not a request"),
    (line(length="many"), "not a request"), (line(length=float("inf")), "input longer"),
    (line(time=float("nan")), "negative or missing time"),
    (line(time=None), "negative or missing"), (line(time=1e300), "negative or missing"),
    (line(time=-1), "negative or missing time"), (line(49_000 - 1), "time before the request above"),
    (line(50_000, 0), "input below 1 token"), (line(50_000, -5), "input below 1 token"),
    (line(50_000, 1_048_577, tuple(range(8193))), "input longer than 1,048,576 tokens"),
    (line(50_000, 400, (1, 2, 3)), "hash list shorter than the length demands"),
    (line(50_000, 128, ()), "hash list shorter than the length demands"),
    (line(50_000, 128, (1, 2)), "hash list longer than the length demands"),
    (line(50_000, 256, (7, 7)), "one block twice in a request"), (line(50_000, 256, (900, 8), output=-1), "negative output"),
    ("\udcff".encode("utf-8", "surrogateescape").decode("latin-1"), "not JSON")])
def test_damaged_line_is_counted_named_and_left_out(bad, reason):
    chunks, reader = with_bad(bad)
    assert requests(chunks) == 100
    assert reader.damage.lines == 1 and reader.damage.read == 101
    (found,) = reader.damage.reasons
    assert found.startswith(reason)
    assert reader.damage.examples[found] == ["the upload line 51"]
    assert "line 51" in str(reader.damage) and reader.damage.as_json()[found]["lines"] == 1


def test_prompts_at_the_edges_of_the_model_are_read():
    for length in (1, 133, 134, 1_048_576):
        blocks = -(-length // 128)
        chunks, reader = with_bad(line(50_000, length, tuple(range(1000, 1000 + blocks))), block_tokens=128)
        assert requests(chunks) == 101 and reader.damage.lines == 0


def test_too_many_damaged_lines_are_refused():
    bad = [line(50_000, 400, (1, 2, 3))] * 10
    text = "\n".join([*GOOD[:50], *bad, *GOOD[50:]])
    assert requests(read(text, max_damaged=0.1)[0]) == 100
    with pytest.raises(NotATrace, match=r"10 of 110 lines are damaged, more than the 5 % .*hash list shorter"):
        read(text)
    with pytest.raises(InputError, match="max_damaged"):
        read(text, max_damaged=1.5)


def test_unsorted_trace_says_so():
    with pytest.raises(NotATrace, match="time before the request above"):
        read("\n".join(reversed(GOOD)))


def test_large_bad_file_is_given_up_early():
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size=-1):
            self.given += size
            return (b"{broken}\n" * (size // 9 + 1))[:size]

    source = Endless()
    with pytest.raises(NotATrace, match="lines are damaged"):
        list(TraceReader(source))
    assert source.given < 20 * 2**20


@pytest.mark.parametrize(("content", "message"), [
    (b"", "is empty"), (b"\n \n", "is empty"), (gzip.compress(b"", mtime=0), "is empty"), (b"PK\x03\x04rest", "a zip archive"),
    (b"\x89PNG\r\n", "a PNG image"), (b"%PDF-1.7", "a PDF"), (b"PAR1", "a Parquet file"), (b"<!doctype html>", "a web page"),
    (b"\x00\x01\x02" * 100, "is no text"), (b"once upon a time\n", "neither a JSON object nor a CSV header"),
    (b"a,b,c\n1,2,3\n", "neither a JSON object nor a CSV header"), (b"[1,2]\n", "neither a JSON object"),
    (b"{}\n" * 3, "3 of 3 lines are damaged"), (b"timestamp,input_length,hash_ids\n", "holds no request"),
    (gzip.compress(b"PK\x03\x04" * 9, mtime=0), "a zip archive"), (gzip.compress(HAND.read_bytes())[:-12], "compressed data are damaged"),
    (b"\n" * 30_000 + b"{}", "nearly empty lines"),
    (b"\x1f\x8bnot gzip", "compressed data are damaged")])
def test_other_files_are_refused_by_name(content, message):
    with pytest.raises(NotATrace, match=message):
        read(content)


def test_missing_file_and_folder_are_refused(tmp_path):
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(NotATrace, match="cannot be read"):
            list(TraceReader(path))


def test_gzip_bomb_is_stopped():
    one = json.dumps({"timestamp": 0, "input_length": 1, "pad": "x" * 2**20}).encode()
    bomb = gzip.compress((one + b"\n") * 4, 9) * 100  # 400 MiB in lines of 1 MiB from 0.4 MB
    assert len(bomb) < 2**20
    tracemalloc.start()
    with pytest.raises(NotATrace, match="expands more than 200 times"):
        read(bomb, max_damaged=1)
    spaces = gzip.compress(b"{" + b" " * 2**20, 9, mtime=0) * 400
    with pytest.raises(NotATrace, match="more than 16,777,216 bytes"):
        read(spaces)
    lines = gzip.compress(b"{}" + b"\n" * 2**20, 9, mtime=0) * 400
    with pytest.raises(NotATrace, match="nearly empty lines"):
        read(lines, max_damaged=1)
    assert tracemalloc.get_traced_memory()[1] < 150 * 2**20
    tracemalloc.stop()


def test_endless_line_and_large_upload_are_stopped():
    with pytest.raises(NotATrace, match="a line of more than 16,777,216 bytes"):
        read(b'{"timestamp": 0, "hash_ids": [' + b"1, " * (6 * 2**20))
    with pytest.raises(NotATrace, match="larger than the 1,000 bytes"):
        read("\n".join(GOOD), max_bytes=1000)


def test_csv_damage():
    text = HAND_CSV.read_text().splitlines()
    text[3:3] = ["10,300", "10,300,20,1 x 5", '10,"300,20,1 4 5', "x,300,20,1 4 5", "10,3 0,20,1 4 5"]
    chunks, reader = read("\n".join(text), max_damaged=0.5)
    assert requests(chunks) == 9  # "x" is an id like any other
    assert reader.damage.lines == 4 and len(reader.damage.reasons) == 3


def test_time_units_and_text_ids():
    seconds = "\n".join(line(n * 0.5, 128, ids=[f"block-{n % 2}"]) for n in range(4))
    chunks, _ = read(seconds, time_unit="s")
    assert np.concatenate([chunk.time for chunk in chunks]).tolist() == [0, 500_000, 1_000_000, 1_500_000]
    ids = np.concatenate([chunk.ids for chunk in chunks])
    assert ids[0] == ids[2] != ids[1] == ids[3]
    big = "\n".join(line(0, 128, ids=[one]) for one in (2**64 - 1, -1, "18446744073709551615"))
    ids = np.concatenate([chunk.ids for chunk in read(big)[0]])
    assert len(set(ids.tolist())) == 2  # a number too large for 64 bits is hashed like its text
    with pytest.raises(InputError, match="time_unit"):
        read(seconds, time_unit="min")


def test_lines_over_block_borders_and_windows_ends(monkeypatch):
    monkeypatch.setattr(trace_lines, "_BLOCK", 37)
    chunks, reader = read("\r\n".join(GOOD) + "\r\n\r\n")
    assert requests(chunks) == 100 and reader.damage.lines == 0
    assert np.concatenate([chunk.line for chunk in chunks]).tolist() == list(range(1, 101))


def test_progress_reaches_the_end(tmp_path):
    path, seen = tmp_path / "t.jsonl", []
    path.write_text("\n".join(GOOD))
    list(TraceReader(path, progress=lambda done, total: seen.append((done, total))))
    assert seen[-1] == (path.stat().st_size,) * 2


def test_memory_does_not_grow_with_the_file():
    """Only one block of lines is held."""

    def source(times):
        return io.BytesIO(b"".join(line(n, 4096, tuple(range(n % 99 * 32, n % 99 * 32 + 32))).encode() + b"\n"
                                   for n in range(2000 * times)))

    peaks = []
    for times in (1, 10):
        file = source(times)
        tracemalloc.start()
        assert sum(chunk.requests for chunk in TraceReader(file)) == 2000 * times
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 100 * 2**20

"""benchmarks/gpu where it cannot measure: one clear line, and nothing is overwritten. A stand-in for PyTorch plays the card."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from inside_deepinfer.facts import load_facts
from inside_deepinfer.facts.gpu_runs import COLUMNS

SCRIPTS = Path(__file__).parents[1] / "benchmarks" / "gpu"
NEEDS_TRITON = ("gather", "batch_bits")

TORCH = '''
class _Cuda:
    def is_available(self): return {available}
    def device_count(self): return {cards}
    def mem_get_info(self): return ({free}, {free})
    def get_device_properties(self, number):
        class P: name, total_memory, multi_processor_count = "NVIDIA Abacus", {free}, 1
        return P
cuda = _Cuda()
class version: cuda = "0"
__version__ = "0"
def manual_seed(seed): pass
def ones(*size, **more): pass
def __getattr__(name): raise RuntimeError("this stand-in\\nhas no " + name)
'''


def run(script: str, folder: Path, out: Path, **torch: object) -> subprocess.CompletedProcess:
    """The script with a stand-in for PyTorch, or with none that can be imported."""
    there = TORCH.format(**{"available": True, "cards": 1, "free": 2**40} | torch) if torch else "raise ImportError('no PyTorch here')"
    (folder / "torch.py").write_text(there)
    for name in ("triton", "triton/language"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "triton" / "__init__.py").write_text("__version__ = '0'\ndef jit(f): return f\n")
    (folder / "triton" / "language" / "__init__.py").write_text("constexpr = int\n")
    return subprocess.run([sys.executable, "-B", str(SCRIPTS / f"{script}.py"), "--out", str(out)], capture_output=True, text=True,
                          timeout=60, env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"})


def one_line(done: subprocess.CompletedProcess) -> str:
    assert done.returncode == 1 and not done.stdout, done.stdout
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.fixture
def places(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "out").mkdir()
    return tmp_path / "lib", tmp_path / "out"


def test_there_is_a_script_for_every_measurement():
    assert set(COLUMNS) <= {path.stem for path in SCRIPTS.glob("*.py")}


@pytest.mark.parametrize("script", sorted(COLUMNS))
def test_without_pytorch_or_card_one_line_and_nothing_changes(script, places):
    lib, out = places
    before = (out / f"{script}.json")
    before.write_text("kept")
    assert "PyTorch is not installed here" in one_line(run(script, lib, out))
    message = one_line(run(script, lib, out, available=False, cards=0))
    assert "sees no NVIDIA GPU" in message and "nothing was measured" in message
    assert before.read_text() == "kept" and list(out.iterdir()) == [before]


@pytest.mark.parametrize("script", ["bandwidth", "matmul", "experts", "layer", "gather", "batch_bits", "uneven", "clocks", "warm"])
def test_too_little_memory_is_said_with_both_sizes(script, places):
    lib, out = places
    message = one_line(run(script, lib, out, free=2**20))
    assert "GiB of free GPU memory are needed, 0.0 GiB are free" in message and not list(out.iterdir())


@pytest.mark.parametrize("script", ["bandwidth", "matmul", "experts", "launch", "batch_bits"])
def test_a_library_that_lacks_something_is_one_line(script, places):
    lib, out = places
    message = one_line(run(script, lib, out, free=2**40))
    assert message.startswith(f"{script}: RuntimeError: this stand-in has no") and message.endswith("nothing was written.")
    assert not list(out.iterdir())


def test_the_link_needs_two_cards_and_torchrun(places):
    lib, out = places
    assert "Two cards are needed" in one_line(run("alltoall", lib, out, cards=1))
    assert "torchrun" in one_line(run("alltoall", lib, out, cards=2))


def test_a_missing_triton_is_said(places):
    lib, out = places
    for script in NEEDS_TRITON:
        run(script, lib, out, cards=1)  # writes the stand-ins
        (lib / "triton" / "__init__.py").write_text("raise ImportError('none')")
        done = subprocess.run([sys.executable, "-B", str(SCRIPTS / f"{script}.py"), "--out", str(out)], capture_output=True, text=True,
                              timeout=60, env={"PYTHONPATH": str(lib), "PATH": "/usr/bin:/bin"})
        assert "Triton is not installed here" in one_line(done)


@pytest.mark.parametrize("content", ["hello", "[]", "{}", json.dumps({"measurement": "weather", "machine": {"card": "x"}})])
def test_a_foreign_file_in_the_way_is_left_alone(content, places):
    lib, out = places
    (out / "launch.json").write_text(content)
    assert "nothing was overwritten" in one_line(run("launch", lib, out, cards=1))
    assert (out / "launch.json").read_text() == content


def test_the_result_of_another_card_is_not_overwritten(places, monkeypatch):
    lib, out = places
    shutil.copy(load_facts().folder / "measured" / "gpu" / "h200" / "launch.json", out)
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import rig

    rig.check_target(out / "launch.json", "NVIDIA H200")
    with pytest.raises(SystemExit, match="holds launch of NVIDIA H200; nothing was overwritten"):
        rig.check_target(out / "launch.json", "NVIDIA Abacus")

"""Shape files: complete and free of contradictions, or an error that names file, group and field."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from inside_deepinfer import catalogue
from inside_deepinfer.facts import FactError, InputError, load_facts
from inside_deepinfer.model.shape import load_shape, model_ids, read_shape

V41 = "deepseek-v4.1-flash"


@pytest.fixture(scope="module")
def raw() -> dict:
    return yaml.safe_load((load_facts().folder / "models" / f"{V41}.yaml").read_text(encoding="utf-8"))


def broken(tmp_path: Path, raw: dict, path: str, value: object) -> Path:
    """A copy of the V4.1 shape with one field changed, or removed where value is None."""
    changed = copy.deepcopy(raw)
    *groups, field = path.split(".")
    place = changed
    for group in groups:
        place = place[group]
    if value is None:
        del place[field]
    else:
        place[field] = value
    file = tmp_path / f"{V41}.yaml"
    file.write_text(yaml.safe_dump(changed), encoding="utf-8")
    return file


@pytest.mark.parametrize("model", model_ids())
def test_every_shape_file_loads_and_every_group_names_its_source(model):
    shape = load_shape(model)
    assert shape.body.source in load_facts().sources
    assert len(shape.ratios) == shape.body.layers


def test_the_comparison_models_are_there():
    assert {V41, "deepseek-v4-flash", "deepseek-v3"} <= set(model_ids())


@pytest.mark.parametrize(("path", "value", "named"), [
    ("body.hidden", None, "body.hidden"),
    ("body.layers", -1, "body.layers"),
    ("body.layers", 40.5, "body.layers"),
    ("experts", None, "experts"),
    ("experts.routd", 5, "experts.routd"),
    ("experts.active", 400, "experts.active"),
    ("attention.window", None, "window"),
    ("attention.ring", 100, "ring"),
    ("attention.output_groups", 7, "output_groups"),
    ("attention.design", "mla", "kv_rank"),
    ("body.encoder_layers", 40, "body.encoder_layers"),
    ("compression.ratios", [[0, 2], [2, 18], [1, 21]], "compression.ratios"),
    ("compression.kv_layers", [2, 8, 14, 40], "compression.kv_layers"),
    ("compression.kv_layers", [2, 14, 8, 20], "compression.kv_layers"),
    ("compression.kv_layers", [1, 2, 8, 14, 20], "layer 1"),
    ("compression.kv_layers", [8, 14, 20], "layer 2"),
    ("compression", None, "compression"),
    ("index.layers", [2, 8, 14, 20, 99], "index.layers"),
    ("index.key_layers", [2, 8, 14, 20, 24], "index.key_layers"),
    ("index.candidates", None, "index.candidates"),
    ("engram.layers", [1, 44], "engram.layers"),
    ("engram.rows", [384006168], "engram.rows"),
    ("draft.active", 200, "draft.active"),
    ("experts.dense_layers", 40, "experts.dense_layers"),
    ("attention.kv_rank", 512, "kv_rank"),
    ("attention.head_dim", 511, "attention.head_dim"),
    ("body.encoder_layers", 19, "body.encoder_layers"),
    ("engram.layers", [], "engram.layers"),
    ("index.layers", [], "index.layers"),
    ("index.layers", [1, 2, 8, 14, 20, 24, 28, 32, 36], "index.layers names layer 1"),
    ("index.key_layers", [], "index.key_layers"),
    ("index.key_layers", [2, 8], "index.key_layers does not name"),
    ("index.candidate_layer", 21, "index.candidate_layer"),
    ("index.candidate_layer", 99, "index.candidate_layer"),
    ("index.candidates", 10, "index.candidates"),
    ("formats.routed", "fp3", "formats.routed"),
    ("formats.window", None, "formats.window"),
    ("formats.index", None, "formats.index"),
    ("body.source", "nowhere", "body.source"),
    ("id", "another-name", "id"),
])
def test_a_damaged_shape_names_the_field(tmp_path, raw, path, value, named):
    with pytest.raises(FactError) as caught:
        read_shape(broken(tmp_path, raw, path, value))
    assert named in str(caught.value)
    assert f"{V41}.yaml" in str(caught.value)


@pytest.mark.parametrize("text", ["", "- a list\n", "id: x\n  y: z\n", "id: [\n"])
def test_a_file_that_is_no_shape_is_one_error(tmp_path, text):
    file = tmp_path / f"{V41}.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FactError, match=V41):
        read_shape(file)


def test_an_unknown_model_lists_the_known_ones():
    with pytest.raises(InputError, match=V41):
        load_shape("deepseek-v5")


@given(layers=st.integers(2, 6), hidden=st.integers(8, 64), experts=st.integers(1, 8), width=st.integers(1, 32))
def test_a_new_model_is_one_data_file(tmp_path_factory, layers, hidden, experts, width):
    """The counts hold for any shape: experts of three matrices, everything else on top."""
    from inside_deepinfer.model.parts import expert_parameters, parts

    shape = {
        "id": "toy", "name": "Toy",
        "body": {"layers": layers, "hidden": hidden, "vocabulary": 100, "max_context": 1000, "source": "inside-deepinfer",
                 "kind": "choice"},
        "attention": {"design": "mla", "heads": 2, "query_rank": 4, "head_dim": 4, "value_dim": 4, "rope_dim": 2, "kv_rank": 4,
                      "source": "inside-deepinfer", "kind": "choice"},
        "experts": {"routed": experts, "active": 1, "shared": 0, "width": width, "source": "inside-deepinfer", "kind": "choice"},
        "formats": {"routed": "bf16", "dense": "bf16", "plain": "bf16", "mixing": "fp32", "kv": "bf16",
                    "source": "inside-deepinfer", "kind": "choice"},
    }
    file = tmp_path_factory.mktemp("shape") / "toy.yaml"
    file.write_text(yaml.safe_dump(shape), encoding="utf-8")
    toy = read_shape(file)
    routed = [part for part in parts(toy) if part.routed]
    assert sum(part.parameters for part in routed) == layers * experts * 3 * hidden * width
    assert expert_parameters(toy) == 3 * hidden * width


def test_an_index_over_mla_takes_keys_from_the_hidden_state(tmp_path):
    """The design of V3.2: V3 with 64 index heads of 128 in every layer; queries, weights and keys by hand."""
    from inside_deepinfer.model.counts import parameters_by_class
    from inside_deepinfer.model.kv import index_entry_bytes
    from inside_deepinfer.model.parts import parts

    raw = yaml.safe_load((load_facts().folder / "models/deepseek-v3.yaml").read_text(encoding="utf-8"))
    raw |= {"id": "with-index", "index": {"heads": 64, "head_dim": 128, "top": 2048, "layers": list(range(61)),
                                          "key_layers": list(range(61)), "source": "inside-deepinfer", "kind": "choice"}}
    raw["formats"]["index"] = "mxfp8"
    file = tmp_path / "with-index.yaml"
    file.write_text(yaml.safe_dump(raw), encoding="utf-8")
    shape = read_shape(file)
    found = parameters_by_class(shape)
    assert found["index keys"] == 61 * 7168 * 128 and found["index queries"] == 61 * 1536 * 64 * 128
    assert found["index head weights"] == 61 * 7168 * 64
    assert index_entry_bytes(shape) == 128 * (1 + 1 / 32)
    assert all(part.parameters > 0 for part in parts(shape))


KIMI_K2 = {  # sizes: docs.nvidia.com/nemo/megatron-bridge, KimiK2Provider; formats as in V3, whose design it shares
    "id": "kimi-k2", "name": "Kimi K2",
    "body": {"layers": 61, "hidden": 7168, "vocabulary": 163_840, "max_context": 131_072},
    "attention": {"design": "mla", "heads": 64, "query_rank": 1536, "head_dim": 128, "value_dim": 128, "rope_dim": 64, "kv_rank": 512},
    "experts": {"routed": 384, "active": 8, "shared": 1, "width": 2048, "dense_layers": 1, "dense_width": 18_432},
    "formats": {"routed": "fp8_128x128", "dense": "fp8_128x128", "plain": "bf16", "mixing": "fp32", "kv": "bf16"},
}


@pytest.fixture
def with_another_model(tmp_path) -> dict[str, str]:
    """Environment in which data/ has one more model file, of another maker."""
    data = tmp_path / "data"
    shutil.copytree(load_facts().folder, data)
    groups = {name: group | {"source": "inside-deepinfer", "kind": "config"} if isinstance(group, dict) else group
              for name, group in KIMI_K2.items()}
    (data / "models" / "kimi-k2.yaml").write_text(yaml.safe_dump(groups), encoding="utf-8")
    return os.environ | {"INSIDE_DEEPINFER_DATA": str(data)}


def command(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "inside_deepinfer", *words], capture_output=True, text=True, env=environment, timeout=120)


def test_a_file_makes_another_makers_model_known_everywhere(with_another_model):
    """Published: one trillion parameters, 32 billion active; MLA with V3's sizes leaves V3's 70,272 bytes."""
    for name, low, high in (("backbone_parameters", 1.0e12, 1.05e12), ("active_parameters_decode", 31.5e9, 32.7e9),
                            ("kv_bytes_per_token", 70_272, 70_272), ("counted_step_time", 1e-3, 1.0)):
        done = command(with_another_model, "value", name, "--set", "model=kimi-k2", "--set", "context=8192", "--json")
        assert done.returncode == 0, done.stderr
        assert low <= json.loads(done.stdout)["value"] <= high, name


@pytest.mark.parametrize(("change", "said"), [
    (lambda models: (models / "kimi-k2.yaml").write_text((models / "kimi-k2.yaml").read_text().replace("active: 8", "active: 800")),
     "kimi-k2.yaml, entry kimi-k2: experts.active = 800 is more than experts.routed = 384"),
    (lambda models: (models / "kimi-k2.yaml").unlink(), "model = 'kimi-k2' is not possible"),
    (lambda models: (models / f"{V41}.yaml").unlink(), f"entry scenario.model, field value: '{V41}' is none of"),
])
def test_a_damaged_or_missing_model_file_is_one_line(with_another_model, change, said):
    change(Path(with_another_model["INSIDE_DEEPINFER_DATA"]) / "models")
    done = command(with_another_model, "value", "backbone_parameters", "--set", "model=kimi-k2")
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("error: ") and said in done.stderr and done.stderr.count("\n") == 1


def test_the_scenario_offers_exactly_the_shape_files():
    from inside_deepinfer.scenario import Scenario

    assert list(Scenario.param["model"].objects) == model_ids()
    for model in model_ids():
        assert catalogue.value("backbone_parameters", model=model) > 0

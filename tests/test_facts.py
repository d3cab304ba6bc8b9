"""Loading data/: what is good loads, and each way to damage it gives one line with file, entry and field."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from inside_deepinfer.facts import FactError, UserError, load_facts, records, store

YAML_FILES = {
    "sources.yaml": ("sources", records.Source), "facts/prices.yaml": ("facts", records.Fact),
    "claims.yaml": ("claims", records.Claim), "hardware/cards.yaml": ("cards", records.Card),
    "measured/index.yaml": ("curves", records.Curve), "presets.yaml": ("presets", records.Preset),
    "glossary.yaml": ("terms", records.Term), "errata.yaml": ("errata", records.Erratum),
}
CSV_FILES = {"prices/deepseek.csv": records.Price, "prices/vendors.csv": records.VendorPrice, "prices/rental.csv": records.Rental}


@pytest.fixture
def folder(tmp_path) -> Path:
    """A copy of data/ that a test may damage."""
    return Path(shutil.copytree(load_facts().folder, tmp_path / "data"))


def failure(folder: Path) -> str:
    """The one line that loading the damaged folder gives."""
    with pytest.raises(FactError) as caught:
        store._load(folder)
    text = str(caught.value)
    assert "\n" not in text and "Traceback" not in text and len(text) < 400
    return text


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def entries(path: Path, key: str) -> list[dict]:
    return store.read_yaml(path)[key]


def write(path: Path, key: str, content: list) -> None:
    path.write_text(yaml.safe_dump({key: content}, allow_unicode=True, sort_keys=False), encoding="utf-8")


# ---- what is there ---------------------------------------------------------------------------------------------------------

def test_the_data_folder_loads_and_a_copy_of_it_too(folder):
    copy = store._load(folder)
    here = load_facts()
    assert copy.facts == here.facts and copy.claims == here.claims and copy.cards == here.cards and copy.prices == here.prices


def test_every_source_can_be_found_again():
    """A source has an address, or a title or note that says where it comes from."""
    for source in load_facts().sources.values():
        assert source.url or source.note or source.kind in ("article", "ours", "paper"), f"source {source.id} names no place"


def test_ids_of_facts_are_dotted_so_that_they_differ_from_derived_numbers():
    assert not [name for name in load_facts().facts if "." not in name]


def test_quantities_carry_unit_kind_and_source():
    facts = load_facts()
    for name in [*facts.facts, *facts.claims]:
        quantity = facts.quantity(name)
        assert quantity.label and quantity.sources and all(source in facts.sources for source in quantity.sources), name


def test_unknown_names_say_so():
    facts = load_facts()
    for call in (facts.quantity, facts.number, facts.points):
        with pytest.raises(UserError, match="no.such"):
            call("no.such")
    with pytest.raises(UserError, match="not a single number"):
        facts.number("v3r1.user_speed")


# ---- every field of every record -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("file", YAML_FILES)
def test_every_required_field_is_missed_and_named(file):
    key, kind = YAML_FILES[file]
    entry = entries(load_facts().folder / file, key)[0]
    required = [name for name, field in kind.model_fields.items() if field.is_required()]
    assert "id" in required
    for name in required:
        with pytest.raises(FactError, match=f"entry {entry['id']}, field {name}: Field required"):
            store.as_record(kind, {field: value for field, value in entry.items() if field != name}, file, entry["id"])


@pytest.mark.parametrize("file", YAML_FILES)
def test_every_field_refuses_a_value_of_another_type(file):
    key, kind = YAML_FILES[file]
    entry = entries(load_facts().folder / file, key)[0]
    for name in kind.model_fields:
        with pytest.raises(FactError, match=rf"entry {entry['id']}, field {name}[.:]"):
            store.as_record(kind, entry | {name: {"a": {"b": object()}}}, file, entry["id"])


@pytest.mark.parametrize("file", YAML_FILES)
def test_an_unknown_field_is_refused(file):
    key, kind = YAML_FILES[file]
    entry = entries(load_facts().folder / file, key)[0]
    with pytest.raises(FactError, match="field vlaue: Extra inputs are not permitted"):
        store.as_record(kind, entry | {"vlaue": 1}, file, entry["id"])


@pytest.mark.parametrize("file", CSV_FILES)
def test_every_column_is_needed_and_no_other_is_allowed(folder, file):
    path = folder / file
    lines = path.read_text(encoding="utf-8").splitlines()
    header = lines[0].split(",")
    for name in (name for name, field in CSV_FILES[file].model_fields.items() if field.is_required()):
        path.write_text("\n".join([lines[0].replace(name, "other", 1), *lines[1:]]), encoding="utf-8")
        with pytest.raises(FactError, match=rf"{path.name}, entry \S+( \d+)?, field ({name}|other)"):
            store.load_csv_records(CSV_FILES[file], path)
    path.write_text("\n".join([",".join([*header[:-1], header[1]]), *lines[1:]]), encoding="utf-8")
    with pytest.raises(FactError, match="two columns have the same name"):
        store.load_csv_records(CSV_FILES[file], path)


@pytest.mark.parametrize("value", [True, "yes", ".nan", ".inf", "[1, two]", '"8.0e+12"', "1e9", "{a: 1}", "null"])
def test_a_fact_takes_numbers_and_names_only(folder, value):
    path = folder / "facts" / "prices.yaml"
    change(path, "value: 0.02,", f"value: {value},")
    assert failure(folder).startswith("prices.yaml, entry price.v41.cny.hit, field value")


def test_a_number_that_yaml_takes_for_text_is_pointed_out(folder):
    change(folder / "facts" / "prices.yaml", "value: 0.02,", "value: 2e12,")
    assert "2e12 was read as text; write a number with a dot and a signed exponent" in failure(folder)


@pytest.mark.parametrize(("value", "good"), [("2026", True), ("2026-10", True), ("2026-10-31", True), ("2026-13", False),
                                             ("2026-1-1", False), ("20261031", False), ("yesterday", False)])
def test_days(folder, value, good):
    change(folder / "sources.yaml", "date: 2026-10}", f"date: {value}}}")
    if good:
        assert store._load(folder).sources["article-000"].date == value
    else:
        assert failure(folder).startswith("sources.yaml, entry article-000, field date: ")


# ---- damage ----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("file", [*YAML_FILES, *CSV_FILES])
def test_a_missing_file(folder, file):
    (folder / file).unlink()
    if file == "facts/prices.yaml":  # one of several files of that folder: what needs its facts says so
        assert failure(folder) == "presets.yaml, entry off-peak, field facts.ph: no fact is called 'price.v41.usd.hit'"
    else:
        assert failure(folder) == f"{Path(file).name}: the file is missing"


def test_a_missing_table(folder):
    (folder / "measured" / "dspark_fig7_pareto.csv").unlink()
    assert failure(folder) == "dspark_fig7_pareto.csv, entry dspark-fig7-pareto: the file is missing"


def test_an_empty_folder_of_facts(folder):
    shutil.rmtree(folder / "facts")
    assert failure(folder) == "facts: the folder has no .yaml files"


@pytest.mark.parametrize(("text", "says"), [
    ("sources: [", "not valid YAML in line"), ("sources:\n  - {id: a\n", "not valid YAML in line"),
    ("\t", "not valid YAML in line"),
    ("", "a list under the key sources is expected"), ("sources: []", "a list under the key sources is expected"),
    ("sources: text", "a list under the key sources is expected"), ("- 1", "a list under the key sources is expected"),
    ("sources: [3]", "entry number 1: is no mapping"), ("sources: [!!python/object:os.system {}]", "not valid YAML"),
    ("sources: [{? [a] : 1}]", "not valid YAML"), ("\x00", "not valid YAML"),
])
def test_damaged_yaml(folder, text, says):
    (folder / "sources.yaml").write_text(text, encoding="utf-8")
    found = failure(folder)
    assert found.startswith("sources.yaml") and says in found


def test_bytes_that_are_no_text(folder):
    for file in ("sources.yaml", "prices/rental.csv", "measured/h100_v41_kernels.csv"):
        good = (folder / file).read_bytes()
        (folder / file).write_bytes(good + b"\xff\xfe\xfa")
        assert failure(folder).startswith(Path(file).name)
        (folder / file).write_bytes(good)


def test_a_key_written_twice(folder):
    change(folder / "sources.yaml", "kind: article, date", "kind: article, kind: paper, date")
    assert re.fullmatch(r"sources.yaml: not valid YAML in line \d+: key written twice: kind", failure(folder))


@pytest.mark.parametrize("file", YAML_FILES)
def test_an_id_used_twice(folder, file):
    key, _ = YAML_FILES[file]
    content = entries(folder / file, key)
    write(folder / file, key, [*content, content[0]])
    assert failure(folder) == f"{Path(file).name}, entry {content[0]['id']}, field id: is used twice"


def test_an_id_used_in_two_files_of_facts(folder):
    shutil.copy(folder / "facts" / "v3r1.yaml", folder / "facts" / "v3r2.yaml")
    assert failure(folder) == "v3r2.yaml, entry v3r1.peak_nodes, field id: is used twice"


def test_a_claim_that_has_the_id_of_a_fact(folder):
    claim = store.read_yaml(folder / "claims.yaml")["claims"][0]["id"]
    change(folder / "facts" / "v3r1.yaml", "id: v3r1.peak_nodes", f"id: {claim}")
    assert failure(folder) == f"claims.yaml, entry {claim}, field id: is also the id of a fact"


def test_a_claim_without_source(folder):
    content = entries(folder / "claims.yaml", "claims")
    name = content[0]["id"]
    for articles in ([], ["007"], None):
        write(folder / "claims.yaml", "claims", [content[0] | {"articles": articles}, *content[1:]])
        assert failure(folder).startswith(f"claims.yaml, entry {name}, field articles")


@pytest.mark.parametrize(("file", "old", "line"), [
    ("facts/v3r1.yaml", "source: v3r1-day6", "v3r1.yaml, entry v3r1.peak_nodes, field source"),
    ("hardware/cards.yaml", "source: [aiconfigurator, ", "cards.yaml, entry h100, field source"),
    ("measured/index.yaml", "source: dspark-paper", "index.yaml, entry dspark-fig7-pareto, field source"),
    ("prices/deepseek.csv", ",price-third-lobe,", "deepseek.csv, entry v3-launch-cny, field source"),
    ("prices/vendors.csv", ",models-dev,", "vendors.csv, entry openai-gpt-6-astra, field source"),
    ("prices/rental.csv", ",rental-akash,", "rental.csv, entry b200-akash, field source"),
    ("presets.yaml", "source: dynamo-recipe", "presets.yaml, entry my-cluster, field source"),
])
def test_an_unknown_source(folder, file, old, line):
    change(folder / file, old, re.sub(r"[a-z0-9]+-[a-z0-9-]+|aiconfigurator", "nobody", old, count=1))
    assert failure(folder) == f"{line}: no source is called 'nobody'"


def test_evidence_from_an_unknown_source(folder):
    content = entries(folder / "claims.yaml", "claims")
    content[0]["evidence"] = [{"source": "nobody", "says": "supports", "text": "a rumour"}]
    write(folder / "claims.yaml", "claims", content)
    assert failure(folder) == f"claims.yaml, entry {content[0]['id']}, field evidence: no source is called 'nobody'"


def test_a_preset_that_names_an_unknown_fact(folder):
    change(folder / "presets.yaml", "pk: price.peak_share_all", "pk: price.peak_share_some")
    assert failure(folder) == "presets.yaml, entry peak, field facts.pk: no fact is called 'price.peak_share_some'"


# ---- tables ----------------------------------------------------------------------------------------------------------------

def test_an_empty_price_is_missing_and_not_zero(folder):
    change(folder / "prices" / "deepseek.csv", "off-peak,0.003,0.15", "off-peak,,0.15")
    row = store._load(folder).prices["v41-usd-off-peak"]
    assert row.cache_hit is None and row.cache_miss == 0.15
    assert load_facts().vendor_prices["vercel-v41"].cache_read is None
    assert load_facts().vendor_prices["deepseek-v41"].cache_write == 0


@pytest.mark.parametrize(("old", "new", "line"), [
    ("2026-09-10,V4.1-Flash,USD,off-peak,0.003", "2026-09-10,V4.1-Flash,EUR,off-peak,0.003", "field currency"),
    ("V4.1-Flash,USD,off-peak,0.003", "V4.1-Flash,USD,off-peak,-0.003", "field cache_hit"),
    ("V4.1-Flash,USD,off-peak,0.003", "V4.1-Flash,USD,off-peak,free", "field cache_hit"),
    ("V4.1-Flash,USD,off-peak,0.003", "V4.1-Flash,USD,off-peak,inf", "field cache_hit"),
    ("V4.1-Flash,USD,off-peak,0.003", "V4.1-Flash,USD,sometimes,0.003", "field window"),
    ("v41-usd-off-peak,2026-09-10", "v41-usd-off-peak,in autumn", "field effective"),
    ("v41-usd-off-peak,2026-09-10,V4.1-Flash", "v41-usd-off-peak,2026-09-10,", "field model"),
])
def test_a_wrong_cell_of_a_price_list(folder, old, new, line):
    change(folder / "prices" / "deepseek.csv", old, new)
    assert failure(folder).startswith(f"deepseek.csv, entry v41-usd-off-peak, {line}: ")


@pytest.mark.parametrize("cells", ["b200-x,B200,nobody", "b200-x,B200,nobody,1,2,now,2026,rental-akash,,one more"])
def test_a_row_with_another_number_of_cells(folder, cells):
    path = folder / "prices" / "rental.csv"
    number = len(path.read_text(encoding="utf-8").splitlines()) + 1
    path.write_text(path.read_text(encoding="utf-8") + cells + "\n", encoding="utf-8")
    assert failure(folder) == f"rental.csv, entry line {number}: has another number of cells than the header"


@pytest.mark.parametrize(("text", "says"), [
    ('kernel,share\n"all,0.2\n', "not valid CSV"), ("kernel,share\n", "has no rows"), ("", "instead of ['kernel', 'share']"),
    ("kernel\nall\n", "instead of ['kernel', 'share']"), ("share,kernel\n1,a\n", "instead of ['kernel', 'share']"),
    ("kernel,share\nall,0.2,1\n", "row 1 has 3 cells instead of 2"),
    ("kernel,share\na,1\nall\n", "row 2 has 1 cells instead of 2"),
    ("kernel,share\nall,many\n", "field share: row 1: 'many' is no number"),
    ("kernel,share\nall,nan\n", "field share: row 1: 'nan' is no finite number"),
    ("kernel,share\nall,1e999\n", "field share: row 1: '1e999' is no finite number"),
])
def test_a_damaged_table(folder, text, says):
    (folder / "measured" / "h100_v41_kernels.csv").write_text(text, encoding="utf-8")
    found = failure(folder)
    assert found.startswith("h100_v41_kernels.csv, entry h100-v41-kernels") and says in found


def test_an_empty_cell_of_a_table_is_not_stated(folder):
    table = store._load(folder).points("dynamo-v41-agentic")
    assert table.prefill_gpus.isna().sum() == 2 and not (table.prefill_gpus == 0).any()


# ---- where the folder is ---------------------------------------------------------------------------------------------------

def test_the_folder_can_be_named(folder, monkeypatch):
    monkeypatch.setenv("INSIDE_DEEPINFER_DATA", str(folder))
    assert load_facts().folder == folder


def test_a_named_folder_without_facts(tmp_path, monkeypatch):
    for place in (tmp_path, tmp_path / "nowhere"):
        monkeypatch.setenv("INSIDE_DEEPINFER_DATA", str(place))
        with pytest.raises(FactError, match=r"no facts here \(sources.yaml is missing\)"):
            load_facts()

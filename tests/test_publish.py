"""The parts of the book's toolchain that need no built book: chains, figures, assets, staging, contents."""

from __future__ import annotations

import errno
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import yaml

from inside_deepinfer import catalogue
from inside_deepinfer.facts import InputError, UserError, load_facts
from inside_deepinfer.figures.figure import finish, line
from inside_deepinfer.figures.theme import KIND_MARK, PALETTE, VERDICT_MARK, recolour
from inside_deepinfer.publish import assets, live, project, staging
from inside_deepinfer.publish.chain import look_up, parse, steps, substituted
from inside_deepinfer.publish.figure_html import figure_html
from inside_deepinfer.publish.number_role import popovers
from inside_deepinfer.publish.system_map import PARTS, ROWS
from inside_deepinfer.publish.verdicts import MEANING, verdicts

ROOT = Path(__file__).resolve().parents[1]


# the role {num}

def test_number_text_is_split_into_its_parts():
    assert parse("hit_rate") == ("hit_rate", "published", {}, "")
    assert parse("fleet.tokens_per_day") == ("fleet.tokens_per_day", "published", {}, "")
    assert parse("gross_margin@off-peak h=0.8 pd=2 | .1%") == ("gross_margin", "off-peak", {"h": "0.8", "pd": "2"}, ".1%")


@pytest.mark.parametrize("text", ["", "two words", "hit_rate h", "hit_rate@", "<b>"])
def test_number_text_that_makes_no_sense_is_refused(text):
    with pytest.raises(UserError, match="is no number"):
        parse(text)


def test_number_is_computed_and_printed_in_the_wanted_form():
    quantity, shown = look_up("effective_input_price h=0.8 | .3f")
    assert shown == "0.216"  # claim price.effective_80: article 004 prints 0.22
    assert quantity.value == catalogue.value("effective_input_price", hit_rate=0.8)
    assert look_up("hit_rate | .0%")[1] == "96%"  # claim prefill.hit_rate


@pytest.mark.parametrize(("text", "error", "words"), [
    ("no_such_number", UserError, "no derived number is called"), ("no.such.fact", UserError, "no fact"),
    ("hit_rate h=2", InputError, "hit_rate"), ("hit_rate@nowhere", InputError, "preset"),
    ("hit_rate | .2q", UserError, "cannot be printed as")])
def test_number_that_cannot_be_had_says_why(text, error, words):
    with pytest.raises(error, match=words):
        look_up(text)


@pytest.mark.parametrize("name", ["tokens_per_second", "revenue_per_cluster_gpu_hour", "effective_input_price", "gross_margin"])
def test_formula_with_numbers_gives_the_number(name):
    quantity = catalogue.quantity(name)
    text = substituted(quantity).replace(",", "")
    assert not re.search("[a-z]_", text)
    assert eval(text) == pytest.approx(quantity.value, rel=2e-3)


def test_chain_holds_each_step_once_and_ends_in_sources():
    chain = steps(catalogue.quantity("revenue_per_cluster_gpu_hour"))
    ids = [step.id for step in chain]
    assert len(ids) == len(set(ids))
    assert all(name in ids for step in chain for name in step.inputs)
    assert all(step.inputs or step.sources for step in chain)
    assert sum(chain[0].rests_on.values()) == sum(1 for step in chain if not step.inputs)


def test_popovers_carry_each_step_once_and_escape_what_they_print():
    chain = [vars(step) | {"label": "<script>"} for name in ("tokens_per_second", "requests_per_day")
             for step in steps(catalogue.quantity(name))]
    html = popovers(chain, lambda name: f"sources.html#source-{name}")
    ids = re.findall(r'<div popover id="([^"]+)"', html)
    assert len(ids) == len(set(ids)) == len({step["id"] for step in chain})
    assert "<script>" not in html


# figures

def sample(**layout) -> dict:
    x = np.linspace(0, 1, 50)
    figure = go.Figure(line(x, x**2, "curve"))
    finish(figure, name="a name/with odd </script> parts", alt="It rises & <bends>.", x="x (ratio)", y="y (ratio)",
           table=pd.DataFrame({"x (ratio)": x, "y </table>": x**2}))
    return json.loads(figure.update_layout(**layout).to_json())


def test_figure_island_keeps_the_data_and_leaves_template_and_table_out():
    html = figure_html(sample(), set())
    island = json.loads(re.search(r'<script type="application/vnd.plotly.v1\+json">(.*?)</script>', html, re.DOTALL)[1])
    assert len(island["data"]) == 1
    assert not {"template", "sliders"} & set(island["layout"])
    assert "table" not in island["layout"]["meta"]
    assert html.count("</script>") == 1
    assert html.count("</table>") == 1
    assert "It rises &amp; &lt;bends&gt;." in html
    assert html.count("<tr>") == 51


def test_figures_of_a_page_get_different_ids():
    taken: set[str] = set()
    ids = [re.search('<figure[^>]* id="([^"]+)"', figure_html(sample(), taken))[1] for _ in range(3)]
    assert len(set(ids)) == 3


def test_figure_without_sentence_or_table_is_refused():
    bare = json.loads(go.Figure(go.Scatter(x=[1], y=[2])).to_json())
    with pytest.raises(ValueError, match="lacks name, alt, table"):
        figure_html(bare, set())


def test_slider_needs_a_name_and_becomes_a_native_one():
    steps_ = [dict(label=str(n), method="animate", args=[[f"s{n}"]]) for n in range(3)]
    with pytest.raises(ValueError, match="no name"):
        figure_html(sample(sliders=[dict(steps=steps_)]), set())
    html = figure_html(sample(sliders=[dict(steps=steps_, active=1, currentvalue=dict(prefix="hit rate: ", suffix=" %"))]), set())
    label = re.search('<label for="([^"]+)">hit rate</label>', html)[1]
    assert f'<input type="range" id="{label}" min="0" max="2" step="1" value="1"' in html
    assert ">1 %</output>" in html


def test_page_recolours_as_the_package_does():
    swap = assets.plot_theme()["swap"]
    light = {"line": {"color": PALETTE["blue"][0]}, "fill": PALETTE["red"][0], "name": "#notacolour"}
    dark = {"line": {"color": swap[PALETTE["blue"][0]]}, "fill": swap[PALETTE["red"][0]], "name": "#notacolour"}
    assert recolour(light, dark=True) == dark


def test_every_kind_and_verdict_has_a_shape_of_its_own_colour():
    css = assets.theme_css()
    for prefix, marks in (("kind", KIND_MARK), ("verdict", VERDICT_MARK)):
        for name in marks:
            assert f".{prefix}-{name}{{--mark:url(" in css
    assert set(KIND_MARK) >= {fact.kind for fact in load_facts().facts.values()}
    assert set(VERDICT_MARK) == set(MEANING)
    assert len({VERDICT_MARK[name] for name in VERDICT_MARK}) == len(VERDICT_MARK)


def test_assets_are_complete_and_ask_nobody(tmp_path):
    assets.copy(tmp_path)
    names = {path.name for path in (tmp_path / assets.FOLDER).iterdir()}
    assert {"plotly.min.js", assets.MATHJAX, "book.css", "book.js", "figures.js", "theme.css", "theme.js"} <= names
    for name in ("book.css", "book.js", "figures.js", "theme.css"):
        text = (tmp_path / assets.FOLDER / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "//cdn" not in text and not re.search(r"https?://", text), name


# the contents

def test_contents_list_exactly_the_chapters_that_exist():
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    listed = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
    chapters = [name for name in listed if name.startswith("notebooks/")]
    assert sorted(chapters) == sorted(f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.md"))
    others = [name for name in [toc["root"], *listed] if not name.startswith("notebooks/")]
    written = [path for path in (ROOT / "book").rglob("*.md") if "notebooks" not in path.parts]
    assert sorted(others) == sorted(path.relative_to(ROOT / "book").with_suffix("").as_posix() for path in written)


def test_no_script_lies_below_static_of_the_book():
    assert not (ROOT / "book" / "_static").exists()


def test_every_box_of_the_map_stands_in_a_row_and_leads_somewhere():
    assert sorted(name for row in ROWS for name in row) == sorted(part.id for part in PARTS)
    slugs = {slug for part in PARTS for slug in part.chapters}
    assert all(re.fullmatch("[a-z-]+", slug) for slug in slugs)


def test_dashboard_pages_have_names_here():
    modules = {path.stem.replace("_", "-") for path in (ROOT / "src/inside_deepinfer/explorer/pages").glob("[a-z]*.py")}
    assert modules <= set(live.PAGES)


def test_chapters_lead_to_dashboard_pages_that_exist():
    modules = {path.stem.replace("_", "-") for path in (ROOT / "src/inside_deepinfer/explorer/pages").glob("[a-z]*.py")}
    for chapter in (ROOT / "notebooks").glob("*.md"):
        for page in re.findall(r"^`{3,}\{live\} (\S+)", chapter.read_text(encoding="utf-8"), re.MULTILINE):
            assert page in modules, f"{chapter.name} leads to /explore/{page}"


def test_prose_of_front_page_and_guides_types_no_number_of_the_model():
    claims = {f"{value:g}" for claim in load_facts().claims.values() for value in
              (claim.value if isinstance(claim.value, list) else [claim.value]) if value is not None and value >= 100}
    for path in [*(ROOT / "book" / "guides").glob("*.md"), ROOT / "book" / "index.md"]:
        prose = re.sub(r"\{\w+\}`[^`]*`", "", path.read_text(encoding="utf-8"))
        typed = {word.replace(",", "") for word in re.findall(r"\d[\d,.]*\d|\d", prose)}
        assert not typed & claims, f"{path.name}: {typed & claims}"


def test_every_claim_has_a_finding():
    assert set(verdicts()) == set(load_facts().claims)
    assert {found.verdict for found in verdicts().values()} <= set(MEANING)


# the state of the checkout

def test_state_changes_with_name_and_content_and_nothing_else(tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    paths = [tmp_path / "a", tmp_path / "b"]
    before = project.hash_of(paths)
    assert project.hash_of(paths) == before
    (tmp_path / "b").write_text("3")
    assert project.hash_of(paths) != before
    assert project.hash_of([]) != project.hash_of([], "salt")


# publishing without leaving anything half-written

@pytest.fixture
def place(tmp_path):
    """An output folder with an old book, and a work folder with a new one."""
    output = tmp_path / "out" / "book"
    output.mkdir(parents=True)
    (output / staging.MARKER).write_text('{"state": "old"}')
    (output / "index.html").write_text("old")
    with staging.work_folder(output, afresh=True) as work:
        (work / "html").mkdir()
        (work / "html" / "index.html").write_text("new")
        yield output, work


def test_publish_replaces_the_old_book_and_leaves_nothing_beside_it(place):
    output, work = place
    staging.publish(work, output, "new")
    assert (output / "index.html").read_text() == "new"
    assert staging.published_key(output) == "new"
    assert {path.name for path in output.parent.iterdir()} == {"book", ".book.work", ".book.lock"}


def test_full_disk_leaves_the_old_book_and_one_clear_line(place, monkeypatch):
    output, work = place

    def full(source, target, **_):
        Path(target).mkdir()
        (Path(target) / "index.html").write_text("ha")
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(OSError) as caught:
        staging.publish(work, output, "new")
    line_ = str(staging.not_built(caught.value, output))
    assert "no space left on device" in line_ and "the old book is as it was" in line_ and "\n" not in line_
    assert (output / "index.html").read_text() == "old"
    assert not (output.parent / ".book.new").exists()


def test_failed_renaming_brings_the_old_book_back(place, monkeypatch):
    output, work = place
    rename = Path.rename

    def fail(self, target):
        if self.name == ".book.new":
            raise OSError(errno.EIO, "Input/output error", str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError):
        staging.publish(work, output, "new")
    assert (output / "index.html").read_text() == "old"


def test_interrupted_renaming_is_mended_by_the_next_build(place):
    output, _ = place
    output.rename(output.parent / ".book.old")
    staging.check(output)
    assert (output / "index.html").read_text() == "old"


def test_folder_of_somebody_else_is_never_replaced(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UserError, match="holds no book of ours"):
        staging.check(tmp_path)
    with pytest.raises(UserError, match="is a file"):
        staging.check(tmp_path / "letter.txt")
    staging.check(tmp_path / "not there yet")


def test_unfinished_work_is_not_reused_and_finished_work_is(tmp_path):
    output = tmp_path / "book"
    with staging.work_folder(output, afresh=False) as work:
        (work / "half").touch()
    with staging.work_folder(output, afresh=False) as work:
        assert not (work / "half").exists()
        (work / "html").mkdir()
        (work / "whole").touch()
        staging.publish(work, output, "key")
    with staging.work_folder(output, afresh=False) as work:
        assert (work / "whole").exists()


def test_two_builds_into_one_folder_do_not_meet(place):
    output, _ = place
    with pytest.raises(UserError, match="another build"), staging.work_folder(output, afresh=False):
        pass


def test_build_outside_a_checkout_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("INSIDE_DEEPINFER_ROOT", str(tmp_path))
    with pytest.raises(UserError, match="no book to build here"):
        project.root()

"""Load ``data/`` once, check every field, and hand out facts with their provenance."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from pydantic import ValidationError

from inside_deepinfer.facts.errors import FactError, UserError
from inside_deepinfer.facts.quantity import Quantity
from inside_deepinfer.facts.records import (
    Card,
    Claim,
    Curve,
    Erratum,
    Fact,
    Preset,
    Price,
    Record,
    Rental,
    Source,
    Term,
    VendorPrice,
)

if TYPE_CHECKING:
    import pandas as pd

R = TypeVar("R", bound=Record)


def data_folder() -> Path:
    """The folder of facts: ``INSIDE_DEEPINFER_DATA``, else beside the sources, else inside the installed package."""
    return _folder(os.environ.get("INSIDE_DEEPINFER_DATA"))


@lru_cache(maxsize=8)
def _folder(named: str | None) -> Path:
    """Looked for once: a dashboard asks for facts some thousand times a second."""
    package = Path(__file__).resolve().parents[1]
    candidates = [Path(named)] if named else [package.parents[1] / "data", package / "_data"]
    for folder in candidates:
        if (folder / "sources.yaml").is_file():
            return folder
    raise FactError(str(candidates[0]), "", "", "no facts here (sources.yaml is missing)")


class _UniqueKeys(yaml.CSafeLoader):
    """Safe YAML that refuses a key written twice."""


def _mapping(loader: _UniqueKeys, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key) for key, _ in node.value]
    twice = {str(key) for key in keys if keys.count(key) > 1}
    if twice:
        raise yaml.constructor.ConstructorError(None, None, f"key written twice: {', '.join(twice)}", node.start_mark)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


# dates stay text: a day is written as it was stated, sometimes without day or month
_UniqueKeys.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: Path) -> Any:
    """Parse one YAML file; errors name the file and the line."""
    try:
        with path.open(encoding="utf-8") as handle:
            return yaml.load(handle, Loader=_UniqueKeys)  # based on a safe loader
    except FileNotFoundError:
        raise FactError(path.name, "", "", "the file is missing") from None
    except (UnicodeDecodeError, OSError) as error:
        raise FactError(path.name, "", "", f"cannot be read: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        problem = " ".join(str(getattr(error, "problem", None) or error).split())
        raise FactError(path.name, "", "", f"not valid YAML{where}: {problem}") from None


def as_record(kind: type[R], raw: Any, file: str, entry: str) -> R:
    """Validate one raw entry; the error names file, entry and field."""
    if not isinstance(raw, dict):
        raise FactError(file, entry, "", "is no mapping of fields to values")
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        raise FactError(file, entry, _field(first["loc"]), first["msg"].removeprefix("Value error, ")) from None


def _field(place: tuple[int | str, ...]) -> str:
    """The path of a field, without the names of types that pydantic adds where several types are allowed."""
    kept = [str(part) for part in place if part not in ("float", "int", "str") and "[" not in str(part)]
    return ".".join(kept)


def _entries(path: Path, key: str) -> list[Any]:
    content = read_yaml(path)
    if not isinstance(content, dict) or not isinstance(content.get(key), list) or not content[key]:
        raise FactError(path.name, "", key, f"a list under the key {key} is expected")
    return content[key]


def _by_id(kind: type[R], raws: Iterable[tuple[str, Any]], file: str) -> dict[str, R]:
    found: dict[str, R] = {}
    for entry, raw in raws:
        record = as_record(kind, raw, file, entry)
        if record.id in found:  # type: ignore[attr-defined]
            raise FactError(file, record.id, "id", "is used twice")  # type: ignore[attr-defined]
        found[record.id] = record  # type: ignore[attr-defined]
    return found


def load_yaml_records(kind: type[R], path: Path, key: str) -> dict[str, R]:
    """All entries of a YAML list as validated records, by id."""
    raws = [(str(raw.get("id", f"number {n}")) if isinstance(raw, dict) else f"number {n}", raw)
            for n, raw in enumerate(_entries(path, key), start=1)]
    return _by_id(kind, raws, path.name)


def load_csv_records(kind: type[R], path: Path) -> dict[str, R]:
    """All rows of a CSV file as validated records, by id; an empty cell is a missing value, not zero."""
    try:
        with path.open(encoding="utf-8", newline="") as handle:
            reader = csv.DictReader(handle, strict=True)
            rows, header = list(reader), reader.fieldnames or []
    except FileNotFoundError:
        raise FactError(path.name, "", "", "the file is missing") from None
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise FactError(path.name, "", "", f"not valid CSV: {error}") from None
    if not rows:
        raise FactError(path.name, "", "", "has no rows")
    if len(set(header)) < len(header):
        raise FactError(path.name, "line 1", "", "two columns have the same name")
    optional = {name for name, field in kind.model_fields.items() if type(None) in getattr(field.annotation, "__args__", ())}
    raws = []
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise FactError(path.name, f"line {number}", "", "has another number of cells than the header")
        cells = {name: (None if name in optional and cell == "" else cell) for name, cell in row.items()}
        raws.append((row.get("id") or f"line {number}", cells))
    return _by_id(kind, raws, path.name)


def read_points(folder: Path, curve: Curve) -> dict[str, list[Any]]:
    """The columns of the table behind a curve; they must be the declared ones, and numbers must be numbers.

    Plain csv and not pandas: every command checks every table at its start, and importing pandas takes seconds.
    """
    file = curve.file
    try:
        with (folder / file).open(encoding="utf-8", newline="") as handle:
            header, *rows = list(csv.reader((line for line in handle if not line.startswith("#")), strict=True)) or [[]]
    except FileNotFoundError:
        raise FactError(file, curve.id, "", "the file is missing") from None
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise FactError(file, curve.id, "", f"not valid CSV: {error}") from None
    if header != list(curve.columns):
        raise FactError(file, curve.id, "columns", f"{header} instead of {list(curve.columns)}")
    rows = [row for row in rows if row]
    if not rows:
        raise FactError(file, curve.id, "", "has no rows")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise FactError(file, curve.id, "", f"row {number} has {len(row)} cells instead of {len(header)}")
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    return {name: list(cells) if curve.columns[name].text else _numbers(file, curve.id, name, cells)
            for name, cells in columns.items()}


def _numbers(file: str, entry: str, column: str, cells: Iterable[str]) -> list[float]:
    """Cells as numbers; an empty cell is NaN, that is: not stated."""
    found = []
    for row, cell in enumerate(cells, start=1):
        try:
            number = float(cell) if cell.strip() else nan
        except ValueError:
            raise FactError(file, entry, column, f"row {row}: {cell!r} is no number") from None
        if cell.strip() and not isfinite(number):
            raise FactError(file, entry, column, f"row {row}: {cell!r} is no finite number")
        found.append(number)
    return found


def load_points(folder: Path, curve: Curve) -> pd.DataFrame:
    """The table behind a curve, checked by :func:`read_points`."""
    import pandas as pd

    return pd.DataFrame(read_points(folder, curve))


@dataclass(frozen=True)
class Facts:
    """Everything in ``data/`` that every part of the book shares."""

    folder: Path
    sources: dict[str, Source]
    facts: dict[str, Fact]
    claims: dict[str, Claim]
    prices: dict[str, Price]
    vendor_prices: dict[str, VendorPrice]
    rentals: dict[str, Rental]
    cards: dict[str, Card]
    curves: dict[str, Curve]
    presets: dict[str, Preset]
    glossary: dict[str, Term]
    errata: dict[str, Erratum]

    def quantity(self, name: str) -> Quantity:
        """The fact or claim called ``name``, as a quantity; an unknown id is an error that says so."""
        if name in self.facts:
            fact = self.facts[name]
            return Quantity(fact.id, fact.value, fact.unit, fact.kind, (fact.source,), (), "", fact.label, fact.note)
        if name in self.claims:
            claim = self.claims[name]
            sources = tuple(f"article-{number}" for number in claim.articles)
            return Quantity(claim.id, claim.value, claim.unit, claim.kind, sources, (), "", claim.statement, claim.note)
        raise UserError(f"no fact or derived number is called {name!r}")

    def number(self, name: str) -> float:
        """The single number of a fact."""
        value = self.quantity(name).value
        if not isinstance(value, (int, float)):
            raise UserError(f"fact {name} is {value!r}, not a single number")
        return float(value)

    def points(self, curve: str) -> pd.DataFrame:
        """A copy of the measured points called ``curve``."""
        if curve not in self.curves:
            raise UserError(f"no curve is called {curve!r}; there are {', '.join(self.curves)}")
        return load_points(self.folder / "measured", self.curves[curve])


@lru_cache(maxsize=4)
def _load(folder: Path) -> Facts:
    sources = load_yaml_records(Source, folder / "sources.yaml", "sources")
    loaded = Facts(
        folder=folder,
        sources=sources,
        facts=_load_facts(folder / "facts", sources),
        claims=load_yaml_records(Claim, folder / "claims.yaml", "claims"),
        prices=load_csv_records(Price, folder / "prices" / "deepseek.csv"),
        vendor_prices=load_csv_records(VendorPrice, folder / "prices" / "vendors.csv"),
        rentals=load_csv_records(Rental, folder / "prices" / "rental.csv"),
        cards=load_yaml_records(Card, folder / "hardware" / "cards.yaml", "cards"),
        curves=load_yaml_records(Curve, folder / "measured" / "index.yaml", "curves"),
        presets=load_yaml_records(Preset, folder / "presets.yaml", "presets"),
        glossary=load_yaml_records(Term, folder / "glossary.yaml", "terms"),
        errata=load_yaml_records(Erratum, folder / "errata.yaml", "errata"),
    )
    _check_references(loaded)
    for curve in loaded.curves.values():
        read_points(folder / "measured", curve)
    return loaded


def _load_facts(folder: Path, sources: dict[str, Source]) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for path in sorted(folder.glob("*.yaml")):
        for name, fact in load_yaml_records(Fact, path, "facts").items():
            if name in facts:
                raise FactError(path.name, name, "id", "is used twice")
            if fact.source not in sources:
                raise FactError(path.name, name, "source", f"no source is called {fact.source!r}")
            facts[name] = fact
    if not facts:
        raise FactError("facts", "", "", "the folder has no .yaml files")
    return facts


def _check_references(loaded: Facts) -> None:
    for file, entry, field, source in _source_references(loaded):
        if source not in loaded.sources:
            raise FactError(file, entry, field, f"no source is called {source!r}")
    for claim in loaded.claims.values():
        if claim.id in loaded.facts:
            raise FactError("claims.yaml", claim.id, "id", "is also the id of a fact")
        for other in claim.see:
            if other not in loaded.claims:
                raise FactError("claims.yaml", claim.id, "see", f"no claim is called {other!r}")
    for preset in loaded.presets.values():
        for parameter, fact in preset.facts.items():
            if fact not in loaded.facts and fact not in loaded.claims:
                raise FactError("presets.yaml", preset.id, f"facts.{parameter}", f"no fact is called {fact!r}")


def _source_references(loaded: Facts) -> Iterable[tuple[str, str, str, str]]:
    for claim in loaded.claims.values():
        yield from (("claims.yaml", claim.id, "articles", f"article-{number}") for number in claim.articles)
        yield from (("claims.yaml", claim.id, "evidence", item.source) for item in claim.evidence)
    for card in loaded.cards.values():
        yield from (("cards.yaml", card.id, "source", source) for source in card.source)
    for file, group in (("deepseek.csv", loaded.prices), ("vendors.csv", loaded.vendor_prices),
                        ("rental.csv", loaded.rentals), ("index.yaml", loaded.curves), ("presets.yaml", loaded.presets)):
        yield from ((file, record.id, "source", record.source) for record in group.values() if record.source is not None)


def load_facts() -> Facts:
    """The facts of this run; read and checked once per process and folder."""
    return _load(data_folder())

"""What one entry of each file in ``data/`` looks like; pydantic checks every field."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from inside_deepinfer.facts.quantity import Kind


def _no_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("yes, no, true and false are no numbers")
    return value


def _year(value: Any) -> Any:
    return str(value) if type(value) is int else value  # YAML reads a bare year as a number


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]*$")]
Day = Annotated[str, BeforeValidator(_year), Field(pattern=r"^\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?$")]
Text = Annotated[str, Field(min_length=1)]
Number = Annotated[float, BeforeValidator(_no_flag), Field(allow_inf_nan=False)]
Positive = Annotated[float, BeforeValidator(_no_flag), Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, BeforeValidator(_no_flag), Field(ge=0, allow_inf_nan=False)]
Verdict = Literal["reproduced", "consistent", "conflict", "identity", "unverifiable"]
Route = Literal["own_inputs", "second_route", "by_construction"]


class Record(BaseModel):
    """Base of all records: unknown fields are errors, nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class Source(Record):
    """Where a value comes from."""

    id: Id
    title: Text
    kind: Literal["article", "paper", "documentation", "config", "code", "dataset", "price list", "measurement", "ours"]
    url: str = Field(default="", pattern=r"^(https://\S+)?$")
    date: Day
    note: str = ""


class Fact(Record):
    """One value with unit, kind and source."""

    id: Id
    label: Text
    value: Number | str | list[Number]
    unit: str
    kind: Kind
    source: Id
    date: Day
    note: str = ""

    @field_validator("value")
    @classmethod
    def _numbers_are_numbers(cls, value: Any) -> Any:
        if isinstance(value, str) and _is_number(value):  # YAML 1.1 takes 1e9 for text
            raise ValueError(f"{value} was read as text; write a number with a dot and a signed exponent, as 1.0e+9")
        return value


class Evidence(Record):
    """A document, or a re-run, that speaks for or against a claim."""

    source: Id
    says: Literal["supports", "contradicts"]
    by: Literal["document", "rerun"] = "document"
    text: Text


class Check(Record):
    """How a claim is recomputed: which derived number, from which scenario, and by which rule the two are compared.

    route own_inputs: from the claim's own stated inputs; must round to the printed value.
    route second_route: an independent way; must land within ``tolerance`` (relative) or ``within``.
    route by_construction: the claim is another claim in other words; equality is no evidence.
    """

    computes: list[Id] = Field(min_length=1)
    route: Route
    relation: Literal["equals", "at_least", "at_most", "within"] = "equals"
    preset: Id = "published"
    set: dict[str, Number | str | list[Number]] = {}  # a list: computed once for each
    against: Id | None = None  # compare with this number instead of the claim's own value
    shows: list[Id] = []  # numbers printed beside the computed ones, not compared
    tolerance: Positive | None = None
    within: tuple[Number, Number] | None = None
    expected: list[Number] = Field(min_length=1)  # golden values, so that a drift is seen


class Claim(Record):
    """One checkable statement of the source articles."""

    id: Id
    articles: list[Literal["000", "001", "004"]] = Field(min_length=1)
    kind: Literal["reported", "estimate", "experiment", "design"]
    said_by: Literal["deepseek", "author", "us"] | None = None  # who says it, where the kind alone would name the wrong one
    statement: Text
    value: Number | list[Number] | None = None
    unit: str = ""
    printed_step: Positive | list[Positive] | None = None  # one unit of the last printed digit
    about: bool = False  # the article says "about": one whole printed step is allowed instead of half
    check: Check | None = None
    evidence: list[Evidence] = []
    expected_verdict: Verdict
    chapter: Id
    see: list[Id] = []
    note: str = ""

    @property
    def speaker(self) -> str:
        """Who says it: what is reported or designed comes from DeepSeek, sums and experiments are an author's."""
        return self.said_by or ("deepseek" if self.kind in ("reported", "design") else "author")

    @model_validator(mode="after")
    def _consistent(self) -> Claim:
        check = self.check
        if check is None:
            return self
        needs_step = check.route == "own_inputs" and check.relation == "equals" and check.against is None
        if needs_step and self.printed_step is None:
            raise ValueError("printed_step is needed where a check must round to the printed value")
        if check.relation == "within" and check.within is None:
            raise ValueError("check.within is needed for relation within")
        if check.route == "second_route" and check.relation == "equals" and check.tolerance is None:
            raise ValueError("check.tolerance is needed for a second route")
        runs = max((len(value) for value in check.set.values() if isinstance(value, list)), default=1)
        if len(check.expected) != len(check.computes) * runs:
            raise ValueError("check.expected needs one value per computed number")
        return self


class Price(Record):
    """One row of DeepSeek's price list, per million tokens."""

    id: Id
    effective: Day
    model: Text
    currency: Literal["CNY", "USD"]
    window: Literal["all", "off-peak", "peak"]
    cache_hit: NotNegative | None
    cache_miss: NotNegative | None
    output: NotNegative | None
    source: Id
    note: str = ""


class VendorPrice(Record):
    """One row of another vendor's price list, USD per million tokens; an empty cell means not stated."""

    id: Id
    vendor: Text
    model: Text
    input: NotNegative
    cache_read: NotNegative | None
    output: NotNegative | None
    cache_write: NotNegative | None
    date: Day
    source: Id
    note: str = ""


class Rental(Record):
    """What a GPU costs to rent, USD per GPU-hour."""

    id: Id
    gpu: Text
    provider: Text
    low: Positive
    high: Positive
    terms: Text
    date: Day
    source: Id
    note: str = ""


class Card(Record):
    """An accelerator card: dense peaks, one direction of the link, decimal units."""

    id: Id
    name: Text
    hbm_bytes: Positive
    hbm_bandwidth: Positive  # B/s
    bf16_flops: Positive
    fp8_flops: Positive | None
    fp4_flops: Positive | None
    scaleup_bandwidth: Positive | None  # B/s, one direction
    scaleup_domain: Annotated[int, BeforeValidator(_no_flag), Field(gt=0)] | None
    power: Positive | None = None  # W
    source: list[Id] = Field(min_length=1)
    date: Day
    note: str = ""


class Column(Record):
    """One column of a table of measured points."""

    unit: str
    label: Text
    text: bool = False


class Curve(Record):
    """A table of published or measured points in ``data/measured``."""

    id: Id
    file: Text
    title: Text
    kind: Kind
    source: Id
    date: Day
    columns: dict[str, Column] = Field(min_length=1)
    note: str = ""


class Preset(Record):
    """A named starting point for scenarios: only what differs from the defaults."""

    id: Id
    label: Text
    doc: Text
    set: dict[str, Number | str] = {}
    facts: dict[str, Id] = {}  # parameter -> fact whose value it takes
    kind: Kind = "choice"
    source: Id | None = None


class Term(Record):
    """A glossary entry."""

    id: Id
    term: Text
    japanese: Text
    meaning: Text


class Erratum(Record):
    """Something published that we found wrong, or that we corrected."""

    id: Id
    date: Day
    where: Text
    was: Text
    now: Text
    why: Text

"""What a dashboard page declares. A page holds no widget, no layout and no formula: the shell draws all of them.

A page module ``explorer/pages/<slug with underscores>.py`` defines one :class:`Page` called ``PAGE``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import plotly.graph_objects as go

from inside_deepinfer.facts import Quantity
from inside_deepinfer.scenario import parameters

MAX_PRIMARY = 3  # more than three sliders and nobody knows which one to move

# every callable of a page takes (scenario, preset); on a page with fields also the dict of their values
FigureFunction = Callable[..., go.Figure]
Finding = Callable[..., str]


@dataclass(frozen=True)
class Number:
    """One number card.

    Attributes:
        name: a derived number, scenario parameter or fact id.
        label: where the catalogue's own label is too long for a card.
        show: ``"percent"`` for ratios that readers know as percent, ``"decimal"`` for bytes that articles print as GB.
        beside: id of a fact or claim with the published value, printed under the card for comparison.
        same: scenario parameters that must be as published for that comparison to mean anything.
    """

    name: str
    label: str = ""
    show: Literal["plain", "percent", "decimal"] = "plain"
    beside: str = ""
    same: tuple[str, ...] = ()


@dataclass(frozen=True)
class Field:
    """An input of one page only, which is no parameter of the scenario (the text of the token laboratory).

    Attributes:
        key: URL key; longer than two letters so that it cannot meet a scenario key.
        options: allowed values of a choice; empty for free text.
        about: option -> (label, what it means), where the option's own name does not say it.
        max_length: most characters; of a private field, most characters in a link.
        private: the value stays out of the address and out of every log, unless the visitor asks for a link that holds it.
        max_bytes: most bytes of UTF-8 that a private field takes.
    """

    key: str
    label: str
    doc: str
    default: str
    options: tuple[str, ...] = ()
    lines: int = 1
    max_length: int = 2000
    about: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    private: bool = False
    max_bytes: int = 0


@dataclass(frozen=True)
class Example:
    """Values of a page's fields that one click puts in place; ``doc`` says what to look at."""

    label: str
    doc: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class Prose:
    """A sentence or paragraph, shown as text and never as HTML; the tone is a word and a shape as well as a colour."""

    text: str
    tone: Literal["plain", "good", "warn"] = "plain"
    title: str = ""


@dataclass(frozen=True)
class Chip:
    """One token or label; ``role`` is a colour role of the theme, ``note`` is read out and shown below."""

    text: str
    role: str = "ink"
    note: str = ""


@dataclass(frozen=True)
class Chips:
    """A row of chips, e.g. the tokens of a prompt."""

    title: str
    chips: Sequence[Chip]


@dataclass(frozen=True)
class Count:
    """One number of a row of counts, with the mark that the same thing carries elsewhere on the page."""

    label: str
    text: str
    mark: str = ""
    tone: Literal["plain", "good", "warn"] = "plain"


@dataclass(frozen=True)
class Counts:
    """Numbers about a visitor's own input: they have no sources and no chain."""

    title: str
    counts: Sequence[Count]


@dataclass(frozen=True)
class TokenStrip:
    """Tokens of a prompt in their turns.

    Attributes:
        turns: :class:`tokens.strip.StripTurn` in order.
        css: style sheet of the strip, the one that the book uses.
        legend: (mark, kind, what it means) of each kind of control token.
    """

    title: str
    turns: Sequence[Any]
    css: str
    legend: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Table:
    """A table the reader can search, sort, filter and download.

    Attributes:
        name: stable id, also the name of the download.
        columns: column titles, with the unit where a column holds numbers.
        rows: cells are text, numbers or None.
        filters: titles of columns that get a select box with their distinct values.
        key: title of the column that identifies a row (its cell opens the details).
        details: (key cell) -> chain of quantities behind the row, asked for when the row is opened.
        marks: title of a column -> {cell text: (shape, colour role)} for values shown by shape as well as colour.
        search: a box to search the rows; a short table needs none.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    filters: tuple[str, ...] = ()
    key: str = ""
    details: Callable[[str], Sequence[Quantity | Prose]] | None = None
    marks: Mapping[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    search: bool = True


Block = Prose | Chips | Counts | TokenStrip | Table
Body = Callable[..., Sequence[Block]]


@dataclass(frozen=True)
class FileAnswer:
    """What a page says about a reader's file: blocks as in a page's body, and figures."""

    blocks: Sequence[Block]
    figures: Sequence[FigureFunction]  # without arguments


@dataclass(frozen=True)
class Upload:
    """A file of the reader's own. A process of its own reads it and ends with the answer; it is kept nowhere.

    Attributes:
        title: heading of its part of the page.
        label: name of the input.
        doc: what kind of file, and how large; said before one is chosen.
        accept: endings that the browser's dialog offers.
        max_bytes: largest file as it is sent.
        read: ``(open file, scenario, preset) -> FileAnswer``; raises a UserError with one clear sentence for anything else.
    """

    title: str
    label: str
    doc: str
    accept: tuple[str, ...]
    max_bytes: int
    read: Callable[..., FileAnswer]


@dataclass(frozen=True)
class Page:
    """One question, at most three controls, a few numbers, one to three figures, one sentence.

    Attributes:
        slug: last part of the address, with hyphens.
        title: name in the navigation, two or three words.
        question: the reader's question, as a sentence with a question mark.
        chapter: slug of the chapter that explains it.
        primary: scenario parameters in sight, at most three.
        folded: title of a folded group -> scenario parameters in it.
        numbers: cards; a bare name stands for ``Number(name)``.
        figures: ``(scenario, preset) -> go.Figure``; the first one is the figure of the stakeholder view.
        finding: ``(scenario, preset) -> str``: one sentence, true for this scenario, with its numbers.
        body: ``(scenario, preset) -> blocks`` below the figures (tables, prose, token chips).
        fields: inputs that belong to this page alone; on a page without scenario parameters they stand above the result.
        examples: values of the fields, one click away.
        prepare: ``(scenario, preset, fields) -> anything``: work that finding, figures and body share; they get its result in the
            place of the fields. It runs in a thread beside the server's loop, its results are not kept, and where it raises, the
            whole result says why.
        upload: a file of the reader's own that the page answers, below everything else.
        ready: False keeps the page out of the navigation.
    """

    slug: str
    title: str
    question: str
    chapter: str
    primary: tuple[str, ...]
    finding: Finding
    figures: tuple[FigureFunction, ...] = ()
    numbers: tuple[Number | str, ...] = ()
    folded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    body: Body | None = None
    fields: tuple[Field, ...] = ()
    examples: tuple[Example, ...] = ()
    prepare: Callable[..., Any] | None = None
    upload: Upload | None = None
    ready: bool = True

    def __post_init__(self) -> None:
        if len(self.primary) > MAX_PRIMARY:
            raise ValueError(f"page {self.slug}: at most {MAX_PRIMARY} primary controls, not {len(self.primary)}")
        known = parameters()
        unknown = [name for name in self.controls if name not in known]
        if unknown:
            raise ValueError(f"page {self.slug}: no scenario parameter is called {', '.join(unknown)}")
        if len(set(self.controls)) != len(self.controls):
            raise ValueError(f"page {self.slug}: a control is declared twice")
        keys = {entry.key for entry in self.fields}
        if any(set(example.values) - keys for example in self.examples):
            raise ValueError(f"page {self.slug}: an example sets what is no field")
        if self.prepare is None and any(entry.private for entry in self.fields):
            raise ValueError(f"page {self.slug}: results of private fields must not be kept, so the page must prepare them")

    @property
    def controls(self) -> tuple[str, ...]:
        """All scenario parameters of the page, those in sight first."""
        return (*self.primary, *(name for group in self.folded.values() for name in group))

    @property
    def cards(self) -> tuple[Number, ...]:
        return tuple(entry if isinstance(entry, Number) else Number(entry) for entry in self.numbers)

"""What an encoding shows: ids, which of them are control tokens, who put each there, and where the turns then lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Owner = Literal["template", "data"]
Verdict = Literal["injected", "template-broken", "dropped", "frame-closed", "changed", "safe"]

VERDICTS: dict[str, str] = {
    "injected": "control tokens come from the text: the model reads markers that the template did not write",
    "template-broken": "no control token comes from the text, but markers of the template itself were lost",
    "dropped": "the text does not reach the prompt",
    "frame-closed": "no control token comes from the text, but it spells the tag that ends its place, which is ordinary text",
    "changed": "no control token comes from the text, but the filter changed the text",
    "safe": "no control token comes from the text, and the text arrives as it was",
}


@dataclass(frozen=True, slots=True)
class Control:
    """One control token of a prompt: ``position`` in the ids, and whose characters it was made from."""

    position: int
    id: int
    spelling: str
    owner: Owner


@dataclass(frozen=True, slots=True)
class Turn:
    """Tokens [start, stop) that a model reads as one turn; ``owner`` is who put its opening marker there."""

    role: str
    start: int
    stop: int
    owner: Owner


@dataclass(frozen=True)
class Encoded:
    """One text in one carrier through one pipeline.

    Attributes:
        prompt: the rendered prompt, whose UTF-8 bytes the ids stand for.
        data: byte ranges of the prompt that hold the text, in order.
        lost: markers of the template that did not become control tokens of the template.
        changed: the pipeline's filter altered the text.
        closes_frame: the text spells the tag that ends its place, and that tag is ordinary text.
        refusal: what the API layer answers instead, where it refuses the request.
        notices: what was replaced in the input.
    """

    carrier: str
    pipeline: str
    spelling: str
    prompt: str
    ids: tuple[int, ...]
    data: tuple[tuple[int, int], ...]
    control: tuple[Control, ...]
    turns: tuple[Turn, ...]
    lost: int
    changed: bool
    closes_frame: bool = False
    refusal: str = ""
    notices: tuple[str, ...] = ()

    @property
    def control_ids(self) -> tuple[int, ...]:
        """Ids of all control tokens, in order."""
        return tuple(token.id for token in self.control)

    @property
    def injected(self) -> int:
        """How many control tokens the text put there."""
        return sum(token.owner == "data" for token in self.control)

    @property
    def forged(self) -> int:
        """How many turns the text opened."""
        return sum(turn.owner == "data" for turn in self.turns)

    @property
    def verdict(self) -> Verdict:
        """The worst that holds."""
        if self.injected:
            return "injected"
        if self.lost:
            return "template-broken"
        if not self.data:
            return "dropped"
        if self.closes_frame:
            return "frame-closed"
        return "changed" if self.changed else "safe"

    @property
    def sentence(self) -> str:
        """The verdict in words, with its numbers."""
        template = len(self.control) - self.injected
        counts = f"{len(self.control)} control tokens, {template} from the template and {self.injected} from the text"
        lost = f", {self.lost} of the template lost" if self.lost else ""
        return f"{self.verdict}: {VERDICTS[self.verdict]}{self.opened} ({counts}{lost})."

    @property
    def opened(self) -> str:
        """The turns that the text opened, as an end of a sentence; empty where there are none."""
        if not self.forged:
            return ""
        return f", and {self.forged:,} {'turn is' if self.forged == 1 else 'turns are'} opened by the text"

    def record(self) -> dict[str, object]:
        """The JSON object of the command line."""
        return {
            "carrier": self.carrier, "pipeline": self.pipeline, "spelling": self.spelling,
            "ids": list(self.ids), "control_ids": list(self.control_ids), "injected": self.injected, "verdict": self.verdict,
            "lost": self.lost, "changed": self.changed, "closes_frame": self.closes_frame, "refusal": self.refusal,
            "notices": list(self.notices),
            "control": [{"position": t.position, "id": t.id, "spelling": t.spelling, "owner": t.owner} for t in self.control],
            "turns": [{"role": t.role, "start": t.start, "stop": t.stop, "owner": t.owner} for t in self.turns],
        }

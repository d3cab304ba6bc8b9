"""The directive {system-map}: the parts of the system, what is released, and the chapter that explains each part."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from inside_deepinfer.publish.tables import _Table

RELEASED, PARTLY, CLOSED = "released", "partly", "not released"
WORDS = {RELEASED: "source released", PARTLY: "partly released", CLOSED: "described, not released"}


@dataclass(frozen=True)
class Part:
    """One box of the map; ``chapters`` are slugs, the first existing one is where the box leads."""

    id: str
    name: str
    does: str
    state: str
    chapters: tuple[str, ...]
    words: str = ""  # where the state's own words do not fit


# what the released package holds was read from its source (source id deepinfer-sdist); claim engine.not_included agrees
PARTS = (
    Part("api", "API layer", "Turns messages into tokens and tokens back into answers.", RELEASED,
         ("tokens", "output-side", "encoding")),
    Part("router", "Router", "Sends each request to a prefill instance, later to a decode instance.", CLOSED,
         ("prefill-decode", "one-day")),
    Part("prefill", "Prefill GPUs", "Compute the part of the prompt that no cache holds.", RELEASED,
         ("prefill-frontier", "one-day")),
    Part("decode", "Decode GPUs", "Produce the answer, several tokens per step, thousands of sequences at once.", RELEASED,
         ("decode-frontier", "hbm", "one-day")),
    Part("store", "KV store", "Keeps what prompts have in common on SSDs, for days.", CLOSED,
         ("kv-store", "cached-token")),
    Part("engine", "Scheduler and engine", "Forms batches, guesses ahead, balances experts, survives failures.", PARTLY,
         ("speculation", "expert-balance", "failures")),
    Part("kernels", "Kernels", "Attention, matrix products and expert exchange, written once for each kind of card.", RELEASED,
         ("token-cost", "determinism")),
    Part("cards", "NVIDIA SM100 and Ascend 950", "The two kinds of card that the released code runs on, with different features.",
         PARTLY, ("hbm", "determinism"), "supported by the released code"),
)
ROWS = (("api", "router"), ("prefill", "store", "decode"), ("engine",), ("kernels",), ("cards",))
FLOWS = (
    "A request enters through the API layer, which turns it into tokens, and the router picks a prefill instance.",
    "Prefill reads the known part of the prompt from the KV store, computes the rest and writes it back.",
    "Decode takes the KV state over and sends tokens back through the API layer.",
    "The engine runs both kinds of instance; kernels and cards carry everything.",
)


class SystemMap(_Table):
    """Boxes are links in reading order; arrows are decoration, the text below says what they mean."""

    def html(self) -> str:
        parts = {part.id: part for part in PARTS}
        rows = "".join(f'<div class="map-row map-row-{len(row)}">{"".join(self._box(parts[name]) for name in row)}</div>'
                       for row in ROWS)
        flows = "".join(f"<li>{escape(flow)}</li>" for flow in FLOWS)
        legend = "".join(f'<li class="map-{state.replace(" ", "-")}">{escape(words)}</li>' for state, words in WORDS.items())
        return (f'<figure class="system-map"><nav aria-label="Map of the system">{rows}</nav>'
                f'<ul class="map-legend" aria-label="Legend">{legend}</ul>'
                f'<figcaption><ol>{flows}</ol></figcaption></figure>')

    def _box(self, part: Part) -> str:
        known = [f"notebooks/{slug}" for slug in part.chapters if f"notebooks/{slug}" in self.env.found_docs]
        state = part.state.replace(" ", "-")
        inner = (f'<strong>{escape(part.name)}</strong> <span class="map-does">{escape(part.does)}</span> '
                 f'<span class="map-state">{escape(part.words or WORDS[part.state])}</span>')
        here = known and known[0] == self.env.docname
        if here and len(known) > 1:
            known, here = known[1:], False
        if known and not here:
            return f'<a class="map-box map-{state} map-{part.id}" href="{self.page(known[0])}">{inner}</a>'
        where = "this chapter" if here else "its chapter is not written yet"
        return f'<div class="map-box map-{state} map-{part.id}">{inner} <span class="map-later">{where}</span></div>'

"""The token strip: an encoding as HTML that is safe for hostile text and can be read by eye, keyboard and screen reader.

Control tokens differ from text by frame, sign and words; colour only repeats it. Nothing of the text reaches the page unescaped,
each token is isolated from the writing direction of its neighbours, and hidden characters are written by their code.
"""

from __future__ import annotations

from html import escape

from inside_deepinfer.figures.theme import PALETTE
from inside_deepinfer.tokens.encoded import Encoded
from inside_deepinfer.tokens.strip import SHOWN, StripPiece, StripTurn, strip

_TEXT_ROLES = {"ink": "ink", "muted": "muted", "line": "grid", "template": "blue", "injected": "red"}


def _palette(dark: bool) -> str:
    return "".join(f"--strip-{name}:{PALETTE[role][dark]};" for name, role in _TEXT_ROLES.items())


STRIP_CSS = f"""
.token-strip {{ {_palette(False)} color: var(--strip-ink); font-size: .95rem; line-height: 2; }}
[data-theme="dark"] .token-strip, .token-strip.dark {{ {_palette(True)} }}
.token-strip .verdict {{ margin: .5rem 0 .6rem; line-height: 1.5; }}
/* the book's theme puts a light box behind HTML output on dark pages */
html[data-theme="dark"] .bd-content div.cell_output .text_html:not(:has(table.dataframe)):has(.token-strip) {{ background: none;
  padding: 0; }}
.token-strip ol {{ list-style: none; margin: 0; padding: 0; }}
.token-strip .turn {{ border-left: 3px solid var(--strip-muted); border-radius: 6px; margin: .35rem 0; padding: .1rem .5rem; }}
.token-strip .turn.forged {{ border-left: 6px double var(--strip-injected); }}
.token-strip .role {{ font-weight: 600; margin-right: .5rem; }}
.token-strip .forged .role {{ color: var(--strip-injected); }}
.token-strip .tokens {{ overflow-wrap: anywhere; white-space: pre-wrap; }}
.token-strip .token {{ border-bottom: 1px solid var(--strip-line); border-right: 1px solid var(--strip-line); }}
.token-strip .control {{ border: 2px solid var(--strip-template); border-radius: 999px; padding: 0 .5em; margin: 0 .15em;
  color: var(--strip-template); font-weight: 600; white-space: nowrap; }}
.token-strip .control.injected {{ border: 3px dashed var(--strip-injected); border-radius: 2px; color: var(--strip-injected); }}
.token-strip .more {{ color: var(--strip-muted); }}
@media (max-width: 600px) {{ .token-strip .role {{ display: block; }} }}
@media print {{ .token-strip .turn {{ break-inside: avoid; }} }}
"""


def token_strip(encoded: Encoded, most: int = SHOWN, dark: bool = False, style: bool = True) -> str:
    """HTML of an encoding: turns as brackets, tokens inside.

    Args:
        most: ordinary tokens shown; control tokens are all shown.
        dark: colours of a dark page where the page does not say so itself (``data-theme``).
        style: put the style sheet in front (a page with many strips brings :data:`STRIP_CSS` once).
    """
    rows = "".join(_turn(turn) for turn in strip(encoded, most))
    sheet = f"<style>{STRIP_CSS}</style>" if style else ""
    classes = "token-strip dark" if dark else "token-strip"
    return (f'{sheet}<div class="{classes}" role="group" aria-label="Tokens of the prompt">'
            f'<p class="verdict">{escape(encoded.sentence)}</p><ol role="list">{rows}</ol></div>')


def _turn(turn: StripTurn) -> str:
    classes = "turn forged" if turn.forged else "turn"
    role = f"⚠ {turn.label}" if turn.forged else turn.label
    more = f' <span class="more">… {turn.left_out:,} more tokens</span>' if turn.left_out else ""
    return (f'<li class="{classes}"><span class="role">{escape(role)}</span>'
            f'<span class="tokens">{"".join(map(_piece, turn.pieces))}</span>{more}</li>')


def _piece(piece: StripPiece) -> str:
    text = f"<bdi>{escape(piece.text)}</bdi>"
    if piece.kind == "text":
        return f'<span class="token">{text}</span>'
    label = escape(piece.label)
    return (f'<span class="control {piece.kind}" role="img" aria-label="{label}" title="{label}">'
            f'<span aria-hidden="true">{piece.mark} </span>{text}</span>')

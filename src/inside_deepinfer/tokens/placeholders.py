"""The one place where a spelling in the text moves a control token of deepseek-recipe: messages built by hand with images.

``UserMessage(content, image_sources)`` takes the first spellings of the image marker in ``content`` as the places of the images
(documented by the library). A literal in the user's text in front of the real one then becomes the placeholder. The API layer
keeps parts of a message apart and is not affected.
"""

from __future__ import annotations

from dataclasses import dataclass

from deepseek_recipe import Conversation, DataUrlImageSource, UserMessage

from inside_deepinfer.tokens.carriers import PIXEL, carrier_of
from inside_deepinfer.tokens.ownership import NEUTRAL, control_tokens, data_ranges
from inside_deepinfer.tokens.rendering import IMAGE, Rendered, recipe
from inside_deepinfer.tokens.spellings import Spelled
from inside_deepinfer.tokens.vocabulary import recipe_encoding


@dataclass(frozen=True)
class Placeholder:
    """Image placeholders of a message whose text spells the marker: how many, and how many stand in the text."""

    count: int
    in_text: int


def by_api(text: str = IMAGE) -> Placeholder:
    """The text and an image as parts of a request."""
    body = carrier_of("image").body
    return _placeholder(recipe(body(Spelled((text,)))), recipe(body(Spelled(NEUTRAL[:1]))), text)


def by_hand(text: str = IMAGE) -> Placeholder:
    """The text and the marker joined into one string, as a caller of the library may do."""
    return _placeholder(_message(text), _message(NEUTRAL[0]), text)


def _message(text: str) -> Rendered:
    message = UserMessage(f"{text}\n\n{IMAGE}", [DataUrlImageSource(PIXEL)])
    conversation = Conversation([message])
    return Rendered(recipe_encoding().render_conversation(conversation).prompt, conversation)


def _placeholder(rendered: Rendered, neutral: Rendered, text: str) -> Placeholder:
    ids = recipe_encoding().encode(rendered.conversation)
    images = [token for token in control_tokens(ids, data_ranges(rendered.prompt, neutral.prompt, (text,)))
              if token.spelling == IMAGE]
    return Placeholder(len(images), sum(token.owner == "data" for token in images))

"""The pages of the dashboard, in the order of the navigation."""

from __future__ import annotations

import importlib
from functools import lru_cache
from importlib.util import find_spec

from inside_deepinfer.explorer.page import Page
from inside_deepinfer.facts import InputError

ORDER = ("fleet", "cache-prices", "revenue", "kv-store", "hbm", "decode-frontier", "prefill-frontier", "speculation", "balance",
         "tokens", "audit")


@lru_cache(maxsize=1)
def all_pages() -> dict[str, Page]:
    """Every page that exists, by slug; a slug of the plan without a module is left out."""
    found = {}
    for slug in ORDER:
        module = f"{__name__}.{slug.replace('-', '_')}"
        if find_spec(module) is not None:
            page: Page = importlib.import_module(module).PAGE
            if page.slug != slug:
                raise ValueError(f"{module} declares the slug {page.slug!r}")
            if page.ready:
                found[slug] = page
    return found


def page_of(slug: str) -> Page:
    """The page at /explore/<slug>."""
    pages = all_pages()
    if slug not in pages:
        raise InputError("page", slug, ", ".join(pages))
    return pages[slug]

"""Cache prices: what an input token costs once the cache has answered most of it."""

from inside_deepinfer import catalogue
from inside_deepinfer.explorer.page import Number, Page
from inside_deepinfer.facts import digits, percent
from inside_deepinfer.figures import prices
from inside_deepinfer.scenario import Scenario


def finding(scenario: Scenario, preset: str) -> str:
    """The effective price, and on which side of the balance point the hit rate lies."""
    names = ["effective_input_price", "balancing_hit_rate"]
    found = {name: quantity.value for name, quantity in catalogue.evaluate(names, scenario, preset).items()}
    price, balance = (found[name] for name in names)
    more, less = ("misses", "hits") if scenario.hit_rate < balance else ("hits", "misses")
    side = "exactly at" if scenario.hit_rate == balance else "below" if scenario.hit_rate < balance else "above"
    sentence = (f"At a hit rate of {percent(scenario.hit_rate)} a million input tokens cost {digits(price)} {scenario.currency} "
                f"on average")
    if side == "exactly at":
        return f"{sentence}; hits and misses earn the same."
    return f"{sentence}; this is {side} the balance point of {percent(balance, 2)}, so {more} earn more than {less}."


PAGE = Page(
    slug="cache-prices",
    title="Cache prices",
    question="What does an input token cost when most of it is cached?",
    chapter="cached-token",
    primary=("hit_rate", "price_hit", "price_miss"),
    folded={"Currency and hours": ("currency", "cny_per_usd", "peak_share")},
    numbers=("effective_input_price",
             "miss_over_hit",
             Number("balancing_hit_rate", show="percent"),
             "hit_over_miss_revenue"),
    figures=(prices.effective_price_curve,),
    finding=finding,
)

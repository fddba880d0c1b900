# SPDX-License-Identifier: BSD-3-Clause
"""verdict.py - compares a claim of the papers with our numbers: same, better or different."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

SAME = "same"
BETTER = "better"
DIFFERENT = "different"

Text = Callable[[float], str]
# This many names tell where to look; the table has all.
_MAX_NAMES = 4


@dataclass(frozen=True)
class Verdict:
    """One claim, our value, the verdict, and one sentence that explains it."""

    claim: str
    paper: str
    ours: str
    verdict: str
    reason: str

    def because(self, cause: str) -> Verdict:
        """Adds a cause that was found in the same rows, if the claim does not hold."""
        if self.verdict != DIFFERENT or not cause:
            return self
        return replace(self, reason=f"{self.reason} {cause}")

    def as_json(self) -> dict[str, str]:
        """For result files."""
        return {
            "claim": self.claim,
            "paper": self.paper,
            "ours": self.ours,
            "verdict": self.verdict,
            "reason": self.reason,
        }


def times(value: float) -> str:
    """Such as 1.93x."""
    return f"{value:.2f}x"


def times_exactly(value: float) -> str:
    """Such as 1.0003x, for claims that depend on the last digit."""
    return f"{value:.4f}x"


def percent(value: float) -> str:
    """A ratio as per cent, with a decimal if it is small."""
    return f"{value:.0%}" if value >= 0.0995 else f"{value:.1%}"


def in_range(
    claim: str,
    values: dict[str, float],
    least: float,
    most: float,
    text: Text,
    is_more_better: bool = True,
) -> Verdict:
    """Whether every value lies in [least, most]; one past the good end is better."""
    paper = f"{text(least)} to {text(most)}"
    if not values:
        return Verdict(claim, paper, "-", DIFFERENT, "Nothing was measured for this claim.")
    inside = [name for name, value in values.items() if least <= value <= most]
    above = [name for name, value in values.items() if value > most]
    below = [name for name, value in values.items() if value < least]
    good, bad = (above, below) if is_more_better else (below, above)
    if bad:
        worst = _extreme(values, not is_more_better)
        edge = least if is_more_better else most
        side = "below" if is_more_better else "above"
        reason = (
            f"{len(bad)} of {len(values)} lie {side} {text(edge)}: {some_of(bad)}; the farthest "
            f"is {worst} with {text(values[worst])}."
        )
        return Verdict(claim, paper, span(values, text), DIFFERENT, reason)
    if good:
        best = _extreme(values, is_more_better)
        reason = (
            f"{len(good)} of {len(values)} go past the range to the good side, {best} with "
            f"{text(values[best])} the farthest; none falls short."
        )
        return Verdict(claim, paper, span(values, text), BETTER, reason)
    reason = f"All {len(inside)} lie between {text(least)} and {text(most)}."
    return Verdict(claim, paper, span(values, text), SAME, reason)


def at_most(claim: str, values: dict[str, float], most: float, text: Text) -> Verdict:
    """Whether no value is above the claimed maximum."""
    paper = f"at most {text(most)}"
    if not values:
        return Verdict(claim, paper, "-", DIFFERENT, "Nothing was measured for this claim.")
    above = {name: value for name, value in values.items() if value > most}
    worst = _extreme(values, True)
    found = f"{worst} has the most with {text(values[worst])}"
    if above:
        many = f"{len(above)} of {len(values)} are above {text(most)}: {some_of(list(above))}"
        reason = f"{many}; {found}."
        return Verdict(claim, paper, span(values, text), DIFFERENT, reason)
    if most > 0 and values[worst] == 0:
        return Verdict(claim, paper, span(values, text), BETTER, f"None of {len(values)} has any.")
    return Verdict(claim, paper, span(values, text), SAME, _alike(values, text) or f"{found}.")


def at_least(claim: str, values: dict[str, float], least: float, text: Text) -> Verdict:
    """Whether no value is below the claimed minimum."""
    paper = f"at least {text(least)}"
    if not values:
        return Verdict(claim, paper, "-", DIFFERENT, "Nothing was measured for this claim.")
    below = [name for name, value in values.items() if value < least]
    worst = _extreme(values, False)
    found = f"{worst} has the least with {text(values[worst])}"
    if below:
        many = f"{len(below)} of {len(values)} are below {text(least)}: {some_of(below)}"
        reason = f"{many}; {found}."
        return Verdict(claim, paper, span(values, text), DIFFERENT, reason)
    return Verdict(claim, paper, span(values, text), SAME, _alike(values, text) or f"{found}.")


def close_to(claim: str, value: float, paper: float, tolerance: float, text: Text) -> Verdict:
    """Whether the value is within a relative tolerance of the paper's."""
    off = abs(value - paper) / abs(paper)
    is_same = off <= tolerance
    reason = (
        f"The difference is {percent(off)} of {text(paper)}, "
        f"{'within' if is_same else 'more than'} {percent(tolerance)}."
    )
    return Verdict(claim, text(paper), text(value), SAME if is_same else DIFFERENT, reason)


def no_more_under(
    other: str, values: dict[str, float], of_other: dict[str, float], least: float, text: Text
) -> str:
    """Which of the values below `least` another controller does not bring there either."""
    below = [name for name, value in values.items() if value < least and name in of_other]
    also = {name: of_other[name] for name in below if of_other[name] < least}
    if not also:
        return ""
    what = "1 of these is" if len(also) == 1 else f"{len(also)} of these are"
    return f"Under {other}, {what} no higher ({span(also, text)})."


def late_there(
    name: str, values: dict[str, float], violated: dict[str, float], least: float, allowed: float
) -> str:
    """In which of the values below `least` the controller compared with is late itself."""
    below = [each for each, value in values.items() if value < least and each in violated]
    late = {each: violated[each] for each in below if violated[each] > allowed}
    if not late:
        return ""
    return (
        f"In {len(late)} of {len(below)} {name} itself is late: {some_of(list(late))} "
        f"({span(late, percent)} of periods)."
    )


def span(values: dict[str, float], text: Text) -> str:
    """One value, or the least and the greatest."""
    least, most = min(values.values()), max(values.values())
    return text(least) if text(least) == text(most) else f"{text(least)} to {text(most)}"


def _extreme(values: dict[str, float], is_largest: bool) -> str:
    return (max if is_largest else min)(values, key=lambda name: values[name])


def some_of(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    shown = names if len(names) <= _MAX_NAMES + 1 else names[:_MAX_NAMES]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _alike(values: dict[str, float], text: Text) -> str:
    """A sentence for values that look the same: none of them is the worst."""
    one = {text(value) for value in values.values()}
    if len(values) == 1 or len(one) > 1:
        return ""
    return f"All {len(values)} have {one.pop()}."

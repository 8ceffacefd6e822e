"""Constructors of frozen values that accept more than they store.

``PureDP(epsilon=0.5)`` takes an int, a float, a text or a fraction and stores a fraction. The constructor that
`dataclasses` would write knows one type for both, so such a class writes its own, which says what is accepted, and
hands the values on as they are: its ``__post_init__`` checks and converts them, as it does for every dataclass.
"""

from __future__ import annotations

__all__ = ["construct", "set_fields"]


def set_fields(target: object, **values: object) -> None:
    """Set fields of a frozen value while it is being built."""
    for name, value in values.items():
        object.__setattr__(target, name, value)


def construct(instance: object, **values: object) -> None:
    """Give a frozen dataclass its fields as they were written, then let its ``__post_init__`` convert them."""
    set_fields(instance, **values)
    instance.__post_init__()  # type: ignore[attr-defined]  # only classes that convert what they are given come here

"""``python -m cloister`` is the ``cloister`` command."""

from __future__ import annotations

from cloister.cli import main

if __name__ == "__main__":
    main()

"""How a release was made, in the words of certificates, of the gate and of the hub.

They stand alone so that commands can name them without loading what signs.
"""

from __future__ import annotations

__all__ = ["ANONYMIZED", "CERTIFIED_KINDS", "SYNTHETIC", "TWO_TABLES"]

ANONYMIZED = "anonymized table"
TWO_TABLES = "two tables"
SYNTHETIC = "synthetic table"
CERTIFIED_KINDS = (ANONYMIZED, TWO_TABLES, SYNTHETIC)

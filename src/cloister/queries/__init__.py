"""Private queries: answers with a known price and a known error, by method or by SQL.

`PrivateTable` is the way in. A question (`Question`) becomes a plan (`plan`): which noise, what promise, which error;
the exact core runs inside the engine; noisy numbers become answers (`Answer`, `Frame`, `Choice`).
"""

from cloister.queries.answers import Answer, Estimate, Frame
from cloister.queries.choices import Choice
from cloister.queries.preview import Preview
from cloister.queries.private_table import PrivateTable

__all__ = ["Answer", "Choice", "Estimate", "Frame", "Preview", "PrivateTable"]

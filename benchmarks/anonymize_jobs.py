"""Work on large tables that is measured in a process of its own: ``python -m benchmarks.anonymize_jobs JOB FACTS``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.anonymize_tools import Way, open_adult
from benchmarks.usage import peak_mebibytes


def release(
    *, name: str, path: str, small: str, algorithm: str, suppression: float, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Anonymize a file after a small one, which pays for imports; write the release beside it.

    Returns:
        CPU and wall seconds up to the release (``cpu``, ``wall``), with writing (``cpu_written``, ``wall_written``),
        the peak memory in MiB, and the path of what was written.
    """
    way = Way(name=name, algorithm=algorithm, suppression=suppression, options=options)
    out = Path(path).with_suffix(".released.parquet")
    way.release(open_adult(Path(small))).write(out, overwrite=True)
    wall, cpu = time.perf_counter(), time.process_time()
    made = way.release(open_adult(Path(path)))
    found = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    made.write(out, overwrite=True)
    found |= {"cpu_written": time.process_time() - cpu, "wall_written": time.perf_counter() - wall}
    return {**found, "peak": peak_mebibytes(), "released": str(out)}


JOBS = {"release": release}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](**json.loads(sys.argv[2]))))

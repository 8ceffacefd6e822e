"""Write the first migration again from the models, for as long as no hub has been released.

Run ``python -m tests.support.first_migration`` after a change of the models. After the first release, add migrations.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from alembic import command

from cloister.hub.store.database import Store
from cloister.hub.store.table_upgrade import configuration


def main() -> None:
    folder = Path(str(configuration().get_main_option("script_location"))) / "versions"
    for old in folder.glob("0001_*.py"):
        old.unlink()
    with tempfile.TemporaryDirectory() as place:
        store = Store(f"sqlite:///{place}/hub.db")
        with store.engine.begin() as connection:
            command.revision(configuration(connection), "The first tables of the hub", autogenerate=True, rev_id="0001")
        store.close()
    (made,) = folder.glob("0001_*.py")
    target = made.with_name("0001_first_tables.py")
    made.rename(target)
    text = target.read_text("utf-8")
    target.write_text("".join(line for line in text.splitlines(keepends=True) if "# ###" not in line), "utf-8")
    for arguments in (["check", "--fix", "-q", "--exit-zero"], ["format", "-q"], ["check", "-q"]):
        subprocess.run([sys.executable, "-m", "ruff", *arguments, str(target)], check=True)


if __name__ == "__main__":
    main()

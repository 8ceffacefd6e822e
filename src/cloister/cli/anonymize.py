"""``cloister anonymize``: a protected copy of a table and its report, from one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.certificates import say_certified, signing_key_of
from cloister.cli.commands import CommandOutput, command
from cloister.cli.options import (
    CHARTS,
    TABLES,
    check_chart,
    check_target,
    data_options,
    file_option,
    open_given_data,
    option,
    output_options,
)
from cloister.core.wordings import join_words, percent
from cloister.errors import ParameterError, UnknownColumnError

if TYPE_CHECKING:
    from cloister.anonymize import AnatomyRelease, Release
    from cloister.core.guarantees import Guarantee
    from cloister.crypto.signatures import SigningKey
    from cloister.data.table import Table

_EXAMPLE = (
    "cloister anonymize visits.csv --schema visits.schema.yaml --k 5 --l 2 \\\n"
    "      -o protected.csv --report release.html"
)
_RECIPES = (".yaml", ".yml")


@command("anonymize", example=_EXAMPLE)
@click.argument("data", metavar="DATA")
@option("--k", metavar="N", text="How many rows (or persons) look alike at least.", type=click.IntRange(1))
@option("--l", "l", metavar="NUMBER", text="How diverse each sensitive column is in every class.")
@option(
    "--l-kind", metavar="KIND", text="distinct, frequency, entropy or recursive.", default="distinct", show_default=True
)
@option("--c", metavar="NUMBER", text="With --l-kind recursive: the factor c.")
@option("--t", "t", metavar="NUMBER", text="How close to the whole table each sensitive column is in every class.")
@option("--t-kind", metavar="KIND", text="equal, ordered, hierarchical or kl.", default="equal", show_default=True)
@option(
    "--model",
    "models",
    metavar="MODEL",
    text="Any model by its name, such as 'p_sensitivity(attribute=diagnosis, p=2, k=5)'; repeat for more.",
    multiple=True,
)
@option("--sensitive", metavar="COLUMN", text="The column that --l and --t are about; all by default.", multiple=True)
@option(
    "--algorithm",
    metavar="NAME",
    text="optimal, mondrian, top_down, clustering, mdav or anatomy; by default the one that loses least inside the "
    "hierarchies.",
)
@option("--values", metavar="KIND", text="How classes are shown: hierarchy, sets or centers.")
@option(
    "--suppression-limit",
    metavar="SHARE",
    text="The share of rows that may be left out.",
    default="0",
    show_default=True,
)
@option("--from-recipe", metavar="FILE", text="Take everything from a recipe instead of the options above.")
@data_options()
@output_options(
    "the protected table",
    report="Write a report",
    more=[
        file_option("--recipe", text="Write the recipe that makes the same release again", endings=_RECIPES),
        file_option("--frontier", text="Draw what each k would cost, and write no table", endings=CHARTS),
    ],
    certificate=True,
)
def anonymize(output: CommandOutput, **options: Any) -> None:  # click's options
    """Make a protected copy of a table in which nobody can be singled out by the columns that others may know.

    DATA is a CSV or Parquet file (also compressed, also several with *), or the address of a database table.

    Columns that identify are left out; quasi-identifiers are generalized until every combination is shared by at least
    k rows; every class is checked before anything is written.
    """
    _check(options)
    if options["frontier"] is not None:
        _sweep(output, options)
        return
    from cloister.anonymize import AnatomyRelease

    key = signing_key_of(options, targets=[options["output_file"]], inputs=_inputs(options))
    with output.progress("Protecting the table") as tell:
        release = _release(options, tell)
    if isinstance(release, AnatomyRelease):
        _finish_two_tables(output, release, options, key)
        return
    with output.progress("Writing"):
        _write(release, options, key)
    output.document(
        {
            **release.to_dict(),
            "output": options["output_file"],
            "report": options["report"],
            "recipe": options["recipe"],
        }
    )
    _show(output, release, options, key)


def _inputs(options: dict[str, Any]) -> tuple[str | None, ...]:
    return options["data"], options["schema"], options["from_recipe"]


def _check(options: dict[str, Any]) -> None:
    inputs = _inputs(options)
    for name, endings in (("output_file", TABLES), ("recipe", _RECIPES)):
        check_target(options[name], inputs=inputs, force=options["force"], endings=endings)
    check_chart(options["frontier"], inputs=inputs, force=options["force"])
    check_target(options["report"], inputs=inputs, force=options["force"])
    if options["output_file"] is None and options["frontier"] is None:
        raise ParameterError("Nothing says where to write the table.", fix="add -o protected.csv.")
    asked = any(options[name] is not None for name in ("k", "l", "t")) or options["models"]
    if options["from_recipe"] is None and options["frontier"] is None and not asked:
        raise ParameterError("Nothing says how well to protect the table.", fix="add --k 5.")
    if options["frontier"] is not None and (options["k"], options["algorithm"], options["models"]) != (None, None, ()):
        raise ParameterError(
            "--frontier tries several k and algorithms of its own.",
            fix="drop --k and --algorithm, and --model, or --frontier.",
        )
    if options["from_recipe"] is not None and (asked or _is_tuned(options)):
        raise ParameterError(
            "Both a recipe and options say how to protect the table.",
            fix="drop --k, --l and --t, --model, --sensitive, --algorithm, --values and --suppression-limit, or "
            "--from-recipe.",
        )
    _check_what_is_written(options)


def _is_tuned(options: dict[str, Any]) -> bool:
    """Return whether options say how, beside how well, to protect the table."""
    return any(options[name] for name in ("algorithm", "values", "sensitive")) or options["suppression_limit"] != "0"


def _check_what_is_written(options: dict[str, Any]) -> None:
    if options["frontier"] is not None and any(
        options[name] for name in ("output_file", "report", "recipe", "from_recipe")
    ):
        raise ParameterError(
            "--frontier draws a chart and makes no release.",
            fix="drop -o, --report, --recipe and --from-recipe, or --frontier.",
        )
    if options["algorithm"] == "anatomy" and options["recipe"] is not None:
        raise ParameterError(
            "Anatomy draws rows at random: no recipe makes the same release again.", fix="drop --recipe."
        )


def _release(options: dict[str, Any], tell: Callable[[float, str], None]) -> Release | AnatomyRelease:
    from cloister.anonymize import Recipe, anonymize

    table = open_given_data(options)
    if options["from_recipe"] is not None:
        prepared = Recipe.read(options["from_recipe"]).run(table, anonymizer=anonymize)
        if prepared.release is None:
            raise ParameterError("The recipe has no anonymize step.", fix="add anonymize: {models: [{k: 5}]} to it.")
        prepared_release: Release | AnatomyRelease = prepared.release
        return prepared_release
    made: Release | AnatomyRelease = anonymize(
        table,
        models=_models(options, table),
        algorithm=options["algorithm"],
        values=options["values"],
        suppression_limit=options["suppression_limit"],
        progress=tell,
    )
    return made


def _models(options: dict[str, Any], table: Table) -> list[Guarantee]:
    from cloister.anonymize.models import parse_model
    from cloister.core.guarantees import KAnonymity, LDiversity, TCloseness

    models: list[Guarantee] = [] if options["k"] is None else [KAnonymity(k=options["k"])]
    for name in _sensitive(options, table):
        if options["l"] is not None:
            models.append(LDiversity(name, l=options["l"], kind=options["l_kind"], c=options["c"]))
        if options["t"] is not None:
            models.append(TCloseness(name, t=options["t"], kind=options["t_kind"]))
    return [*models, *map(parse_model, options["models"])]


def _sensitive(options: dict[str, Any], table: Table) -> tuple[str, ...]:
    for name in options["sensitive"]:
        if name not in table.columns:
            raise UnknownColumnError(name, table.columns)
    if options["l"] is None and options["t"] is None:
        return ()
    names = options["sensitive"] or tuple(
        name for name in table.columns if name in table.schema and table.schema[name].role == "sensitive"
    )
    if not names:
        raise ParameterError(
            "--l and --t are about sensitive columns, and the schema has none.",
            fix="write role: sensitive for the columns that others want to know.",
        )
    return tuple(names)


def _write(release: Release, options: dict[str, Any], key: SigningKey | None) -> None:
    release.write(options["output_file"], overwrite=options["force"], signing_key=key)
    if options["recipe"] is not None:
        release.recipe.write(options["recipe"], overwrite=options["force"])
    if options["report"] is not None:
        release.report(options["report"], title=f"Release of {Path(options['data']).name}")


def _show(output: CommandOutput, release: Release, options: dict[str, Any], key: SigningKey | None) -> None:
    from cloister.anonymize.pitfalls import silence

    after = release.risk.reidentification
    if release.silent_columns:
        output.say(f"{silence(release.silent_columns)}\n")
    output.say(f"The protected table is in {options['output_file']}.")
    say_certified(output, options["output_file"], key)
    if release.choice:
        output.say(f"\n{release.choice}")
    output.say(f"\n{release.guarantee.explain()}")
    output.heading("What it gives away, and what was lost")
    rows = [
        ["classes", f"{release.partition.size:,}, the smallest with {after.smallest:,} rows"],
        ["highest risk", f"{percent(after.prosecutor_max)} for anybody who is picked out by the quasi-identifiers"],
        ["detail lost", f"{percent(release.ncp)} (mean over rows and quasi-identifiers)"],
        ["rows left out", f"{release.suppressed:,}"],
    ]
    output.table(["", ""], rows)
    output.heading("Mind")
    for pitfall in release.pitfalls:
        output.say(f"- {pitfall}")
    if options["report"] is not None:
        output.say(f"\nThe report is in {options['report']}.")


def _finish_two_tables(
    output: CommandOutput, release: AnatomyRelease, options: dict[str, Any], key: SigningKey | None
) -> None:
    places = [
        str(place) for place in release.write(options["output_file"], overwrite=options["force"], signing_key=key)
    ]
    if options["report"] is not None:
        release.report(options["report"], title=f"Release of {Path(options['data']).name} in two tables")
    output.document({**release.to_dict(), "output": places, "report": options["report"], "recipe": None})
    output.say(f"The protected tables are in {join_words(places)}.")
    say_certified(output, places[0], key)
    output.say(f"\n{release.guarantee.explain()}")


def _sweep(output: CommandOutput, options: dict[str, Any]) -> None:
    from cloister.anonymize import frontier

    table = open_given_data(options)
    names = _sensitive(options, table)
    with output.progress("Trying") as tell:
        found = frontier(
            table,
            l=() if options["l"] is None else (options["l"],),
            t=() if options["t"] is None else (options["t"],),
            attribute=names or None,
            l_kind=options["l_kind"],
            t_kind=options["t_kind"],
            c=options["c"],
            suppression_limit=options["suppression_limit"],
            progress=tell,
        )
    found.plot().save(options["frontier"])
    output.document({**found.to_dict(), "chart": options["frontier"]})
    output.table(["release", "risk and loss"], [list(row) for row in found.summary()])
    output.say(f"\nThe chart is in {options['frontier']}.")

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st

from cloister import attacks
from cloister.anonymize import AnatomyRelease, Release, anonymize
from cloister.attacks.tables._candidate_classes import fit_people, people_of
from cloister.attacks.tables._published_table import publish
from cloister.core.random import SeededRandomSource
from cloister.errors import CloisterError, UnsatisfiableError
from tests.support.random_releases import Case, cases, ways
from tests.support.thoroughness import examples

MARK = re.compile("§|1987-")
EXAMPLES = examples(3, usual=2)
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
WAYS = [way for way in ways() if way[0] in ("mondrian", "optimal", "clustering", "mdav", "top_down")]
TRUTHFUL = [way for way in WAYS if way[1] != "centers"]


def _release(case: Case) -> Release | None:
    try:
        made = anonymize(
            case.table(),
            models=list(case.models),
            algorithm=case.algorithm,
            values=case.values,
            suppression_limit=case.suppression_limit,
            population=case.population_table(),
            **case.options,
        )
    except UnsatisfiableError:
        return None
    assert not isinstance(made, AnatomyRelease)
    return made if made.partition.size else None


def _name(way: tuple[str, str, dict[str, Any]]) -> str:
    return "-".join([way[0], way[1], *map(str, way[2].values())])


@pytest.mark.slow
@pytest.mark.parametrize("way", TRUTHFUL, ids=_name)
@given(data=st.data())
@settings(max_examples=EXAMPLES, phases=PHASES)
def test_everybody_fits_the_class_that_shows_them(way: Any, data: Any) -> None:
    release = _release(data.draw(cases(way, largest=12)))
    if release is None:
        return
    published = publish(release)
    classes = published.row_classes
    assert np.bincount(classes[classes >= 0], minlength=len(published.sizes)).tolist() == published.sizes.tolist()
    assert (classes < 0).sum() == release.suppressed
    fitting = fit_people(published, people_of(release.original, published.quasi))
    assert (fitting.fits_class(classes) | (classes < 0)).all()
    candidates = fitting.candidates[fitting.people.kinds][classes >= 0]
    assert (candidates >= published.sizes[classes[classes >= 0]]).all()
    result = attacks.linkage(release)
    assert result.success <= result.expected_hits / result.trials + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS[::3], ids=_name)
@given(data=st.data())
@settings(max_examples=EXAMPLES, phases=PHASES)
def test_no_attack_quotes_a_cell_or_breaks(way: Any, data: Any) -> None:
    case = data.draw(cases(way, largest=12))
    release = _release(case)
    if release is None:
        return
    sensitive = [item.name for item in publish(release).cells.sensitive][:1]
    source = SeededRandomSource(6)
    tried: list[Any] = [
        lambda: attacks.linkage(release),
        lambda: attacks.linkage(release, kind="distance"),
        lambda: attacks.linkage(release, kind="probabilistic"),
        lambda: attacks.table_membership(release, release.original),
        lambda: attacks.singling_out(release, attempts=20, random_state=source),
        lambda: attacks.uniqueness(release),
    ]
    for name in sensitive:
        tried += [
            lambda name=name: attacks.homogeneity(release, sensitive=name),
            lambda name=name: attacks.similarity(release, sensitive=name),
            lambda name=name: attacks.background_knowledge(release, sensitive=name, neighbors=1),
            lambda name=name: attacks.probabilistic_inference(release, sensitive=name, random_state=source),
            lambda name=name: attacks.skewness(release, sensitive=name),
            lambda name=name: attacks.intersection([release, release], sensitive=name),
        ]
    for attack in tried:
        assert not MARK.search(_told(attack))


def _told(attack: Any) -> str:
    """Return all that an attack says, or how it is refused."""
    try:
        result = attack()
    except CloisterError as error:
        return str(error)
    assert result.interval[0] <= result.success <= result.interval[1]
    return json.dumps(result.to_dict()) + repr(result) + result.verdict + str(result.summary())

from __future__ import annotations

from typing import Any

import pytest

from cloister import local
from cloister.local.protocol import FOLLOWED
from cloister.local.survey import example_survey, simulate

DOMAIN = ["no", "yes"]
PEOPLE = DOMAIN * 50


def _rappor() -> Any:
    protocol = local.Rappor(domain=DOMAIN, epsilon=1)
    return protocol, protocol.estimate(protocol.randomize(PEOPLE))


def _attributes() -> Any:
    several = local.SeveralAttributes({"a": DOMAIN, "b": DOMAIN}, epsilon=1)
    return several, several.estimate(several.randomize({"a": PEOPLE, "b": PEOPLE}))["a"]


def _repeated() -> Any:
    question = local.RepeatedQuestion(DOMAIN, epsilon=1, times=2)
    return question, question.estimate([question.enroll().report("no")])


def _memoized() -> Any:
    question = local.MemoizedQuestion(DOMAIN, epsilon=1, distinct=2, instantaneous=1)
    assert FOLLOWED in question.report_guarantee.assumptions
    return question, question.estimate([question.enroll().report("no")])


def _leveled() -> Any:
    question = local.LeveledQuestion(DOMAIN)
    found = question.estimate(question.randomize(PEOPLE, levels="low"))
    return found, found.stratified


def _naive_bayes() -> Any:
    model = local.LocalCategoricalNaiveBayes(features={"a": DOMAIN}, classes=DOMAIN, epsilon=1)
    return model, local.LocalGaussianNaiveBayes(bounds={"a": (0, 1)}, classes=DOMAIN, epsilon=1)


def _survey() -> Any:
    survey = example_survey()
    collector = local.Collector(survey)
    collector.add_lines(simulate(survey, respondents=50).lines())
    found = collector.estimate()
    return found, found["married"]


@pytest.mark.parametrize("made", [_rappor, _attributes, _repeated, _memoized, _leveled, _naive_bayes, _survey])
def test_every_local_guarantee_says_that_devices_follow_the_protocol(made: Any) -> None:
    for one in made():
        assert one.guarantee.assumptions[0] == FOLLOWED
        assert FOLLOWED in one.guarantee.explain()


@pytest.mark.parametrize("name", sorted(local.protocols))
def test_so_does_every_protocol(name: str) -> None:
    given: dict[str, Any] = {"epsilon": 1}
    if name == "heavy_hitters":
        given |= {"kind": "integer", "size": 8}
    elif name.endswith("_vector"):
        given |= {"bounds": [(0, 1), (0, 1)]}
    elif issubclass(local.protocols.get(name), local.NumericProtocol):
        given |= {"bounds": (0, 1)}
    else:
        given |= {"domain": DOMAIN} | ({"most": 1} if name == "unary_set" else {})
    protocol: Any = local.protocols.get(name)
    assert protocol(**given).guarantee.assumptions == (FOLLOWED,)

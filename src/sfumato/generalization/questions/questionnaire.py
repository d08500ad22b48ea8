# SPDX-License-Identifier: Apache-2.0
"""Ask one person after the other, and stop where the decision is settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import check_choice, check_integer, is_number
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import read_table
from sfumato.generalization.attributes import Attribute, CategoryAttribute
from sfumato.generalization.questions.decisions import NOT_ASKED, Codes, Proof, TreeDecision
from sfumato.generalization.questions.model_reading import BucketModel, ModelInput

if TYPE_CHECKING:
    from sfumato.generalization.artifact import Generalization

_MOST_ALIKE = 200  # records of the background that agree with all answers, to be drawn from alone
_LEAST_SHARE = 0.001  # of a bucket: any may be answered
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class NextQuestion:
    """What to ask next, or the decision if nothing more has to be asked.

    Attributes
    ----------
    attribute : str or None
        The attribute to ask; None: the decision is settled.
    choices : tuple of str
        Labels of its buckets.
    decision : object or None
        The class, once it is settled.
    probability : float
        That the decision stays as it is, whatever the rest of the answers: 1 where it is proven. Until it is settled,
        that of the most likely class, or 0 where it was not worked out.
    proof : {"exact", "bounded", "drawn"}
        Whether the questions end as soon as the decision is settled; perhaps later, since a bound had to do; or as far
        as drawn answers tell.
    open : tuple of str
        Attributes that may still change the decision.
    """

    attribute: str | None
    choices: tuple[str, ...]
    decision: Any
    probability: float
    proof: Proof
    open: tuple[str, ...]

    @property
    def is_settled(self) -> bool:
        """True if nothing more has to be asked."""
        return self.attribute is None


@dataclass(frozen=True, eq=False)
class Interviews:
    """What many people would be asked.

    Attributes
    ----------
    asked : ndarray of bool, shape (people, attributes)
        Which attributes each person is asked.
    decisions : ndarray
        The class after the last question.
    complete : ndarray
        The class that the model predicts from all answers.
    names : tuple of str
    n_collected : int
        Attributes that everybody would be asked without it.
    """

    asked: NDArray[np.bool_]
    decisions: NDArray[Any]
    complete: NDArray[Any]
    names: tuple[str, ...]
    n_collected: int

    @property
    def n_asked(self) -> NDArray[np.int64]:
        """Number of questions that each person is asked."""
        return np.asarray(self.asked.sum(axis=1))

    @property
    def n_changed(self) -> int:
        """Number of people whose decision would be another one with all answers."""
        return int((self.decisions != self.complete).sum())


class Questionnaire:
    """Ask a person only what can still change the decision of a model.

    Parameters
    ----------
    generalization : Generalization
        The buckets that can be answered.
    model : classifier or pipeline
        Fitted on what ``generalization.transform`` gives.
    takes : {"codes", "labels", "representatives"}, default="codes"
        What the model was fitted on.
    probability : float, default=1.0
        Questions end when the decision stays as it is with at least this probability. 1: when no answer can change it.
    background : frame, optional
        Records of other people, from which answers not given yet are drawn: for `probability` below 1, and for models
        that cannot be read. None: they are drawn by the shares of the buckets, independently of each other.
    n_draws : int, default=1000
    random_state : int, default=0

    Attributes
    ----------
    proof : {"exact", "bounded", "drawn"}
        ``"exact"`` for linear models and decision trees of scikit-learn, also behind encoders that treat each column
        by itself; ``"bounded"`` for forests and boosted trees; ``"drawn"`` for all other models.
    classes : ndarray

    Notes
    -----
    *Guarantee.* With ``probability=1`` and a proof that is exact or bounded, the decision is the one that the model
    makes from all answers, for every person. An exact questionnaire asks nothing that cannot matter any more; a bounded
    one may. A drawn one can err where fewer than about 3 of `n_draws` people in a row would differ.

    *What the questions tell.* The next question depends on the answers so far and on the model, and on nothing else.
    Someone who has the answers learns nothing more from which questions were asked. Someone who sees only how many were
    asked, or how long it took, learns something of the answers and of the decision.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sfumato import PrivacyAwareTree
    >>> age, hours = np.tile(np.arange(20, 80), 10), np.repeat(np.arange(10), 60)
    >>> X, y = np.column_stack([age, hours]), (age >= 50) & (hours > 4)
    >>> generalization = PrivacyAwareTree(alpha=0, min_samples_leaf=20).fit(X, y).generalization_
    >>> tree = DecisionTreeClassifier(random_state=0).fit(generalization.codes(X), y)
    >>> questionnaire = Questionnaire(generalization, tree)
    >>> first = questionnaire.ask({})
    >>> first.attribute, first.is_settled
    ('x0', False)
    >>> questionnaire.ask({"x0": 30}).decision
    False
    >>> questionnaire.ask({"x0": 60}).attribute
    'x1'
    """

    def __init__(
        self,
        generalization: Generalization,
        model: Any,
        *,
        takes: ModelInput = "codes",
        probability: float = 1.0,
        background: Any = None,
        n_draws: int = 1000,
        random_state: int = 0,
    ) -> None:
        check_choice("takes", takes, ("codes", "labels", "representatives"), hint="Models mostly take codes.")
        check_integer("n_draws", n_draws, 10)
        if not is_number(probability) or not 0.5 < probability <= 1:
            raise ParameterError(
                f"{named('probability', probability)}: expected a number above 0.5 and at most 1. 1 asks until no "
                "answer can change the decision."
            )
        self.attributes: tuple[Attribute, ...] = generalization.attributes
        self.names = generalization.names
        self.probability = float(probability)
        self.n_draws, self.random_state = int(n_draws), int(random_state)
        self._background = None if background is None else generalization.codes(background).astype(np.int64)
        shares = [bucket_shares(attribute) for attribute in self.attributes]
        self._weights, self._sizes = shares, [len(own) for own in shares]
        self._model = BucketModel.of(self.attributes, generalization.fingerprint, model, takes)
        self.classes = self._model.classes
        self.decision = self._model.read(np.concatenate(shares), self._completed)
        self.proof: Proof = self.decision.proof
        self._generalization = generalization
        self._known: dict[bytes, tuple[int | None, int | None, float]] = {}

    # -- one person ------------------------------------------------------------------------------------------

    def ask(self, answers: Mapping[str, Any]) -> NextQuestion:
        """Return what to ask a person next.

        Parameters
        ----------
        answers : mapping of str to object
            The answers so far, by attribute: the label of a bucket, or a value, whose bucket is found; None stands for
            an answer that the person would rather not give.
        """
        codes = self._codes_of(answers)
        place, decided, probability = self._step(codes)
        if place is None:
            assert decided is not None
            return NextQuestion(None, (), self.classes.tolist()[decided], probability, self.proof, ())
        still_open = tuple(self.names[own] for own in self.decision.open_attributes(codes))
        attribute = self.attributes[place]
        return NextQuestion(attribute.name, attribute.labels, None, probability, self.proof, still_open)

    def _codes_of(self, answers: Mapping[str, Any]) -> Codes:
        codes = np.full(len(self.names), NOT_ASKED, np.int64)
        for place, attribute in enumerate(self.attributes):
            if not attribute.is_collected:
                codes[place] = 0
        for name, answer in answers.items():
            attribute = self._generalization.attribute(name)
            codes[self.names.index(name)] = bucket_of_answer(attribute, answer)
        return codes

    def _step(self, codes: Codes) -> tuple[int | None, int | None, float]:
        """Return the attribute to ask next, or None and the place of the class, and how sure it is."""
        key = codes.tobytes()
        if key not in self._known:
            self._known[key] = self._find_step(codes)
        return self._known[key]

    def _find_step(self, codes: Codes) -> tuple[int | None, int | None, float]:
        if (codes >= 0).all():
            return None, int(self._model.predict(codes[None, :])[0]), 1.0
        decided = self.decision.settled(codes)
        if decided is not None:
            return None, decided, 1.0 if self.proof != "drawn" else _lower_bound(self.n_draws, self.n_draws)
        likely, probability = self._likely(codes)
        if probability >= self.probability < 1:
            return None, likely, probability
        if not self.decision.open_attributes(codes):  # scores that differ by no more than rounding: the model decides
            rest = np.where(codes < 0, 0, codes)
            return None, int(self._model.predict(rest[None, :])[0]), 1.0
        return self.decision.next_attribute(codes), None, probability

    def _likely(self, codes: Codes) -> tuple[int, float]:
        """Return the most likely class and its probability; from draws, the lower end of an interval of it."""
        if self._background is None and isinstance(self.decision, TreeDecision):
            chances = self.decision.chances(codes)
            return int(chances.argmax()), float(chances.max())
        if self.probability == 1:
            return 0, 0.0  # nothing but a proof will do
        counts = np.bincount(self.decision.decide(self._completed(codes)))
        return int(counts.argmax()), _lower_bound(int(counts.max()), int(counts.sum()))

    def _completed(self, codes: Codes) -> Codes:
        """Return drawn records that agree with some answers; the same ones in every run."""
        generator = np.random.default_rng(self.random_state)
        if self._background is not None:
            asked = codes >= 0
            alike = np.flatnonzero((self._background[:, asked] == codes[asked]).all(axis=1))
            rows = alike if len(alike) >= _MOST_ALIKE else np.arange(len(self._background))
            drawn = self._background[generator.choice(rows, self.n_draws)]
        else:
            drawn = np.column_stack(
                [
                    generator.choice(size, self.n_draws, p=own)
                    for size, own in zip(self._sizes, self._weights, strict=True)
                ]
            )
        return np.where(codes >= 0, codes, drawn)

    # -- many people -----------------------------------------------------------------------------------------

    def interview(self, X: Any) -> Interviews:
        """Ask people whose records are known, and compare the decisions with those from all answers.

        Parameters
        ----------
        X : frame or array
            Their records, in full resolution.
        """
        records = self._generalization.codes(X).astype(np.int64)
        complete = self._model.predict(records)
        asked = np.zeros(records.shape, np.bool_)
        decided = np.zeros(len(records), np.int64)
        start = self._codes_of({})
        waiting = [(start, np.arange(len(records)))]
        while waiting:
            codes, rows = waiting.pop()
            place, found, _ = self._step(codes)
            if place is None:
                assert found is not None
                decided[rows] = found
                continue
            asked[rows, place] = True
            answers = records[rows, place]
            for bucket in np.unique(answers):
                following = codes.copy()
                following[place] = bucket
                waiting.append((following, rows[answers == bucket]))
        n_collected = sum(attribute.is_collected for attribute in self.attributes)
        return Interviews(asked, self.classes[decided], self.classes[complete], self.names, n_collected)


def bucket_shares(attribute: Attribute) -> NDArray[np.float64]:
    """Return the share of people in every bucket: as the document says, and evenly where it says nothing."""
    told = [bucket.share for bucket in attribute.buckets]
    rest = max(0.0, 1 - sum(share for share in told if share is not None)) / max(1, told.count(None))
    shares = np.array([max(_LEAST_SHARE, rest if share is None else share) for share in told])
    return np.asarray(shares / shares.sum())


def bucket_of_answer(attribute: Attribute, answer: Any) -> int:
    """Return the bucket of an answer: the label of a bucket, or a value."""
    if isinstance(answer, str) and answer in attribute.labels:
        return attribute.labels.index(answer)
    if _is_no_answer(answer):
        return attribute.missing
    import pyarrow as pa

    try:
        table = read_table(pa.table({attribute.name: pa.array([answer])}))
        if isinstance(attribute, CategoryAttribute) and attribute.value_type == "number":
            table = table.with_categorical([attribute.name])
        return int(attribute.encode(table.column(attribute.name))[0])
    except (InputError, pa.ArrowException, TypeError, ValueError, OverflowError):  # Arrow has all of them for a type
        raise ParameterError(
            f"the answer to {attribute.name!r} is neither the label of one of its {attribute.n_buckets} buckets nor a "
            f"value of its kind ({attribute.kind}): expected one of these. None stands for no answer."
        ) from None


def _is_no_answer(answer: Any) -> bool:
    """Return True for None, and for what frames have in the place of a missing value."""
    if isinstance(answer, np.datetime64 | np.timedelta64):
        return bool(np.isnat(answer))
    # By name, since pandas may not be installed.
    return type(answer).__name__ in ("NoneType", "NAType", "NaTType") or (
        isinstance(answer, float) and answer != answer
    )


def _lower_bound(n_alike: int, n: int) -> float:
    """Return the lower end of the exact one-sided interval of a share."""
    from scipy.stats import beta

    return float(beta.ppf(1 - _CONFIDENCE, n_alike, n - n_alike + 1)) if n_alike else 0.0

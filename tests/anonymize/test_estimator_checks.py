# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's checks of estimators, and the family's own checks of anonymizers."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import AnonymizedClassifier, AnonymizedRegressor, KAnonymity, ModelGuidedAnonymizer
from sfumato.representatives import REPRESENTATIVES
from sfumato.testing import ANONYMIZER_CHECKS, check_anonymizer, people

ESTIMATORS = [
    ModelGuidedAnonymizer(k=2),
    AnonymizedClassifier(LogisticRegression(), k=2),
    AnonymizedClassifier(DecisionTreeClassifier(random_state=0), k=2, transform_at_predict=True),
    AnonymizedRegressor(Ridge(), k=2),
    AnonymizedRegressor(DecisionTreeRegressor(random_state=0), k=2, transform_at_predict=True),
]


def expected_failures(estimator):
    """Return the checks that fail on purpose, each with its reason."""
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "k counts records, never weights: a record that is there twice gives its group one more member, a record "
            "of weight 2 does not, so the groups differ"
        ),
    }


@pytest.mark.filterwarnings("ignore:the model explains less of raw records")  # some checks have random targets
@pytest.mark.filterwarnings("ignore:what .* share is the same for everybody")  # or few records
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimators_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", ANONYMIZER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("representative", REPRESENTATIVES)
def test_anonymizers_pass_the_checks_of_the_family(representative, check):
    check(ModelGuidedAnonymizer(k=5, representative=representative, random_state=0))


@pytest.mark.parametrize("check", ANONYMIZER_CHECKS, ids=lambda check: check.__name__)
def test_the_checks_take_records_of_the_caller(check):
    table, guide = people(seed=3)
    frame = table.append_column("person", [np.arange(120) // 2]).append_column("name", [[f"n{i}" for i in range(120)]])
    anonymizer = ModelGuidedAnonymizer(
        k=4,
        quasi_identifiers=["age", "income", "town"],
        identifiers=["name"],
        keep=["joined"],
        criteria=[KAnonymity(3, unit="person")],
        limits={"age": 3},
        split_on="all",
    )
    for X in (frame, frame.to_pandas()):
        check(anonymizer, X, guide)


# ---- every check of the family can fail ------------------------------------------------------------------------------


class NoChange(ModelGuidedAnonymizer):
    """Hands out what it was handed."""

    def fit_transform(self, X, y=None, sample_weight=None):
        self.fit(X, y)
        return X

    def release(self, X, y=None, **more):
        release = super().release(X, y, **more)
        return type(release)(X, 0, 0, {})


class LosesRecords(ModelGuidedAnonymizer):
    def fit_transform(self, X, y=None, sample_weight=None):
        return super().fit_transform(X, y).slice(1)

    def release(self, X, y=None, **more):
        release = super().release(X, y, **more)
        return type(release)(release.table.slice(1), 0, 0, {})


class WritesToItsInput(ModelGuidedAnonymizer):
    def fit_transform(self, X, y=None, sample_weight=None):
        released = super().fit_transform(X, y)
        y[0, 0] += 1
        return released


class DependsOnOrder(ModelGuidedAnonymizer):
    def fit_transform(self, X, y=None, sample_weight=None):
        # Groups of five neighbors, whoever they are.
        self.fit(X, y)
        places = np.arange(X.num_rows) // 5 * 5
        return X.take(places)


class Remembers(ModelGuidedAnonymizer):
    def fit_transform(self, X, y=None, sample_weight=None):
        n_fits = getattr(self, "n_fits_", 0)
        self.n_fits_ = n_fits + 1
        released = super().fit_transform(X, y)
        return released if n_fits == 0 else released.slice(0, 0)


class TransformsNothing(ModelGuidedAnonymizer):
    def transform(self, X):
        return X


class CountsItsThreads(ModelGuidedAnonymizer):
    def fit_transform(self, X, y=None, sample_weight=None):
        released = super().fit_transform(X, y)
        return released.set_column(0, "age", [pa.array([self.n_jobs] * X.num_rows)])


class EditsItsParameters(ModelGuidedAnonymizer):
    def fit(self, X, y=None, sample_weight=None):
        self.quasi_identifiers = list(range(X.num_columns))
        return super().fit(X, y)


class ForgetsInPickles(ModelGuidedAnonymizer):
    def __setstate__(self, state):
        super().__setstate__(state)
        self.partition_.values["age"][0].values[:] = 0


class IgnoresLargeK(ModelGuidedAnonymizer):
    def fit_transform(self, X, y=None, sample_weight=None):
        return X if self.k > X.num_rows else super().fit_transform(X, y)


BROKEN = {
    "check_released_groups_meet_k": (NoChange, LosesRecords),
    "check_releases_of_other_records_meet_k": (NoChange, LosesRecords),
    "check_input_frame_is_untouched": (WritesToItsInput,),
    "check_row_order_does_not_matter": (DependsOnOrder,),
    "check_fit_twice_equals_fit_once": (Remembers,),
    "check_transform_equals_fit_transform": (TransformsNothing,),
    "check_number_of_threads_does_not_matter": (CountsItsThreads,),
    "check_parameters_stay_as_given": (EditsItsParameters,),
    "check_pickled_anonymizer_transforms_alike": (ForgetsInPickles,),
    "check_k_beyond_the_table_is_refused": (IgnoresLargeK,),
}


@pytest.mark.parametrize("check", ANONYMIZER_CHECKS, ids=lambda check: check.__name__)
def test_every_check_of_the_family_finds_what_it_looks_for(check):
    for broken in BROKEN[check.__name__]:
        with pytest.raises(AssertionError, match=broken.__name__):
            check(broken(k=5))


def test_all_checks_run_at_once():
    check_anonymizer(ModelGuidedAnonymizer(k=3))
    with pytest.raises(AssertionError, match="NoChange released a group of 1"):
        check_anonymizer(NoChange(k=3))

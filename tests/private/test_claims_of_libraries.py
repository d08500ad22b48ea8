# SPDX-License-Identifier: Apache-2.0
"""Steps of Opacus and interpret-core, as our learners run them, keep their claims; deliberate defects are found.

Each library's own code draws the noise, hundreds of thousands of times on two tables that differ in one record, and
counting bounds epsilon from below. What is deterministic in a step is computed once.
"""

import itertools
import math
from importlib.util import find_spec

import numpy as np
import pytest

from sfumato.private import network
from sfumato.private.accounting import gaussian_scale
from sfumato.private.network import PrivateSteps
from twins.frequency_audit import epsilon_at_least
from twins.seeded_noise import seed_private

pytestmark = pytest.mark.thorough

EPSILON, DELTA = 1.0, 1e-2
needs_opacus = pytest.mark.skipif(
    find_spec("opacus") is None or find_spec("torch") is None, reason="opacus is not installed (extra: dp)"
)
needs_interpret = pytest.mark.skipif(
    find_spec("interpret") is None, reason="interpret-core is not installed (extra: dp)"
)


@pytest.fixture(autouse=True)
def seeded(monkeypatch):
    """Seed the libraries' generators, so that an audit tells the same every time."""
    seed_private(monkeypatch)


def runs_of(fast, slow=1_000_000):
    return pytest.mark.parametrize(
        "runs",
        [fast, pytest.param(slow, marks=[pytest.mark.slow, pytest.mark.timeout(7200)])],
        ids=lambda runs: f"{runs} runs",
    )


# -- Opacus: one noisy gradient ----------------------------------------------------------------------------------------

NUMBERS = np.array([[1.0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0]])
CODES = np.array([0, 1, 1])
MORE = np.array([[0.0, 1, 0, 1]])  # the neighbor's record, whose label the network below finds impossible
TABLES = (NUMBERS, CODES), (np.vstack([NUMBERS, MORE]), np.append(CODES, 1))
CLIP = 1.0


def sure_network():
    """Return a network with one hidden layer that answers the first class, with certainty."""
    torch = network.require_torch()
    module = network.dense_network((4, 3, 2), network.seeded_generator(0), activation="Tanh")
    with torch.no_grad():
        module[2].bias.copy_(torch.tensor([30.0, -30.0]))
    return module


def parts(noise, *, clip=CLIP, noise_clip=CLIP):
    """Return the private parts of a network whose gradients are clipped at `clip`, with noise for `noise_clip`."""
    torch = network.require_torch()
    found = network._private_parts(
        sure_network(), noise, batch_size=1.0, learning_rate=0.01, clip=noise_clip, device=torch.device("cpu")
    )
    found[0].max_grad_norm = clip
    return found


def clipped_sum(numbers, codes, **settings):
    """Return the sum of clipped gradients before any noise, flat, with the optimizer that holds it."""
    torch = network.require_torch()
    private, optimizer, criterion = parts(1.0, **settings)
    optimizer.zero_grad()
    rows, labels = network.as_tensors([numbers, codes], "cpu")
    with pytest.warns(UserWarning, match="backward hook"):
        criterion(private(rows), labels).backward()
    optimizer.accumulate()
    return torch.cat([p.summed_grad.ravel() for p in optimizer.params]).numpy().copy(), optimizer


def noisy_sums(numbers, codes, noise, direction, runs, **settings):
    """Return Opacus' noisy sum of gradients many times, along a direction.

    Opacus adds noise to one sum at a time. So the parameters are made as many copies of themselves.
    """
    torch = network.require_torch()
    _, optimizer = clipped_sum(numbers, codes, **settings)
    optimizer.noise_multiplier = noise
    along = torch.from_numpy(direction).float()
    n_copies = min(runs, 10_000)
    for parameter in optimizer.params:
        total, parameter.grad = parameter.summed_grad, None
        parameter.data = parameter.data.repeat(n_copies, *[1] * parameter.dim())
        parameter.summed_grad = total.repeat(n_copies, *[1] * total.dim())
    told = []
    for _ in range(math.ceil(runs / n_copies)):
        optimizer.add_noise()
        every = torch.cat([p.grad.reshape(n_copies, -1) for p in optimizer.params], dim=1)
        told.append((every @ along).numpy())
        for parameter in optimizer.params:
            del parameter.summed_grad._processed  # Opacus refuses to use a sum twice
    return np.concatenate(told)[:runs]


def audit_of_a_gradient(runs, *, shrink=1.0, **settings):
    """Return the audited epsilon of a step that claims EPSILON and DELTA."""
    noise = gaussian_scale(EPSILON, DELTA) * shrink
    without, with_one = (clipped_sum(*table)[0] for table in TABLES)
    direction = (with_one - without) / np.linalg.norm(with_one - without)
    told = [noisy_sums(*table, noise, direction, runs, **settings) for table in TABLES]
    return epsilon_at_least(*told, delta=DELTA)


@needs_opacus
def test_one_record_moves_the_sum_of_gradients_by_the_clip_at_most():
    random = np.random.default_rng(0)
    lengths = []
    for _ in range(20):
        n = int(random.integers(1, 6))
        numbers, codes = random.normal(size=(n, 4)) * 5, random.integers(0, 2, n)
        without, _ = clipped_sum(numbers[:-1], codes[:-1]) if n > 1 else (0.0, None)
        with_one, _ = clipped_sum(numbers, codes)
        lengths.append(np.linalg.norm(with_one - without))
    assert max(lengths) <= CLIP * (1 + 1e-5)
    assert np.median(lengths) > 0.9 * CLIP  # and most are clipped, so that the bound is tested


@needs_opacus
@runs_of(20_000)
def test_a_noisy_gradient(runs):
    assert 0.4 * EPSILON < audit_of_a_gradient(runs) <= EPSILON


@needs_opacus
def test_defect_gradients_are_clipped_further_out_than_the_noise_is_made_for():
    assert audit_of_a_gradient(10_000, clip=3 * CLIP) > EPSILON


@needs_opacus
def test_defect_too_little_noise():
    assert audit_of_a_gradient(10_000, shrink=0.4) > EPSILON


@needs_opacus
def test_defect_the_same_noise_in_every_step(monkeypatch):
    monkeypatch.setattr(network, "_secret_seed", lambda: 7)  # the same seed again
    sums = [noisy_sums(*table, 3.0, np.ones(23), 1) for table in TABLES]
    exact = [
        clipped_sum(n, c)[0].sum() for n, c in ((NUMBERS, CODES), (np.vstack([NUMBERS, MORE]), np.append(CODES, 1)))
    ]
    # The difference of two runs has no noise: whoever knows the seed subtracts it.
    np.testing.assert_allclose(sums[1] - sums[0], exact[1] - exact[0], atol=1e-5)
    monkeypatch.undo()  # and seeds of the operating system
    fresh = [noisy_sums(NUMBERS, CODES, 3.0, np.ones(23), 1)[0] for _ in range(2)]
    assert fresh[0] != fresh[1]


@needs_opacus
@runs_of(200_000)
def test_a_noisy_gradient_of_a_random_batch(runs):
    """Coin flips for every record, the sum of the batch, noise: against what the accountant claims for one step."""
    torch = network.require_torch()
    step = PrivateSteps.of_budget(EPSILON, DELTA, n_steps=1, rate=0.5)
    assert step.noise < gaussian_scale(EPSILON, DELTA)  # a random batch needs less
    numbers, codes = TABLES[1]
    sums = {
        batch: clipped_sum(numbers[list(batch)], codes[list(batch)])[0] if batch else np.zeros(23)
        for size in range(5)
        for batch in itertools.combinations(range(4), size)
    }
    direction = sums[3,] / np.linalg.norm(sums[3,])
    generator = torch.Generator().manual_seed(network._secret_seed())

    def noisy(values):
        return values + torch.normal(0.0, step.noise * CLIP, (runs,), generator=generator).numpy()

    told = []
    for n in (3, 4):
        drawn = np.zeros((runs, n), bool)
        drawn.ravel()[network._batch(runs * n, step.rate)] = True
        along = np.array(
            [sums[tuple(np.flatnonzero(bits))] @ direction for bits in itertools.product((0, 1), repeat=n)]
        )
        told.append(noisy(along[drawn @ (1 << np.arange(n)[::-1])]))
    assert 0.3 * EPSILON < epsilon_at_least(*told, delta=DELTA) <= EPSILON
    # A batch that always has everybody, with the noise of a random one, is found out.
    whole = [noisy(sums[tuple(range(n))] @ direction) for n in (3, 4)]
    assert epsilon_at_least(*whole, delta=DELTA) > EPSILON


# -- interpret-core: a round of boosting, and the bins -----------------------------------------------------------------


def rounds_of(n_rounds, monkeypatch, *, has_more, shrink=1.0):
    """Return the noisy sum of residuals around one record, over many rounds of boosting that do not move the model.

    Every round has the noise of a single query, and its learning rate is next to nothing: so all rounds ask the same.
    """
    from interpret.glassbox._ebm import _boost, _ebm

    cells, codes, scores = np.repeat([0.0, 1.0, 2.0], 4)[:, None], np.tile([0, 1], 6), np.zeros(12)
    if has_more:  # a record that the model is sure about, and wrong
        cells, codes, scores = np.vstack([cells, [[1.0]]]), np.append(codes, 0), np.append(scores, 30.0)
    updates = []

    class Recorded(_boost.Booster):
        def set_term_update(self, place, tensor):
            updates.append(tensor.copy())
            super().set_term_update(place, tensor)

    one_query = _ebm.calc_gdp_noise_multi
    rate = 1e-9
    with monkeypatch.context() as patched:
        patched.setattr(_boost, "Booster", Recorded)
        patched.setattr(_ebm, "calc_gdp_noise_multi", lambda total_queries, **budget: shrink * one_query(1, **budget))
        model = booster(epsilon=EPSILON, delta=2 * DELTA, max_rounds=n_rounds, learning_rate=rate)
        model.fit(cells, codes, init_score=scores)
    place = int(np.searchsorted(model.bins_[0][0], 1.0, side="right")) + 1  # a cut at a value lies below it
    return -np.array([_sum_around(update, model.bin_weights_[0], place) for update in updates]) / rate


def booster(**settings):
    """Return interpret-core's model with the settings of our wrapper for one column of three cells."""
    from sfumato.private.boosting import require_interpret

    return require_interpret().DPExplainableBoostingClassifier(
        feature_types=["continuous"], privacy_bounds={0: (-0.5, 2.5)}, n_jobs=1, random_state=None,
        bin_budget_frac=1e-3, **settings,
    )  # fmt: skip


def _sum_around(update, weights, place):
    """Return the noisy sum of the part of a round that a bin lies in: an update is that sum over the part's weight."""
    part = update == update[place]
    return update[place] * weights[part].sum()


@needs_interpret
@runs_of(5_000)
def test_a_round_of_boosting(runs, monkeypatch):
    told = [rounds_of(runs, monkeypatch, has_more=has_more) for has_more in (False, True)]
    assert (
        abs(told[1].mean() - told[0].mean() - 1) < 6 * math.sqrt(2 / runs) * told[0].std()
    )  # one record, one residual
    assert 0.2 * EPSILON < epsilon_at_least(*told, delta=DELTA) <= EPSILON


@needs_interpret
def test_defect_too_little_noise_in_a_round(monkeypatch):
    told = [rounds_of(5_000, monkeypatch, has_more=has_more, shrink=0.25) for has_more in (False, True)]
    assert epsilon_at_least(*told, delta=DELTA) > EPSILON


@needs_interpret
@runs_of(4_000)
def test_the_bins_of_a_column(runs):
    from interpret.utils import _privacy

    native = _privacy.Native.get_native_singleton()
    scale = _privacy.calc_gdp_noise_multi(1, EPSILON, DELTA)

    class Column(np.ndarray):
        """A column that says 20, however many values it has: interpret-core takes the number of records as public."""

        def __len__(self):
            return 20

    def audited(runs, factor=1.0):
        return epsilon_at_least(*(counted(n, runs, factor) for n in (20, 21)), delta=DELTA)

    def counted(n, runs, factor):
        column = np.ones(n).view(Column)
        made = (column, None, factor * scale, 1, 0.0, 2.0, native.create_rng(n))
        bins = (_privacy.private_numeric_binning(*made) for _ in range(runs))
        return np.array([sum(weights) for _, weights in bins])

    assert 0.1 * EPSILON < audited(runs) <= EPSILON
    assert audited(4_000, 0.2) > EPSILON

# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # A hospital's registry
#
# A hospital keeps a registry of stays. Researchers at a university ask for a copy, to see which diagnoses become more frequent with
# age. **Can they have one from which nobody learns a patient's diagnosis, and does it still answer their question?**
#
# The stays are invented here. Some patients come more than once, as in every registry.

# %%
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import sfumato
from sfumato.datasets import make_census

random = np.random.default_rng(11)
patients = make_census(3_000, as_frame="pandas", missing=0, random_state=11).data[["age", "sex"]]
patients.insert(0, "patient", [f"P{number:05}" for number in range(len(patients))])
districts = ["north", "east", "south", "west", "harbor"]
patients["district"] = random.choice(districts, len(patients), p=[0.3, 0.3, 0.2, 0.15, 0.05])

diagnoses = ["fracture", "asthma", "depression", "diabetes", "heart failure", "HIV"]
age = patients["age"].to_numpy()[:, None]
slope = np.array([0.0, -0.02, -0.01, 0.04, 0.09, -0.01])
start = np.array([1.2, 1.0, 0.7, 0.2, -1.6, -1.4])
chance = np.exp(start + slope * (age - 45))
drawn = (chance / chance.sum(axis=1, keepdims=True)).cumsum(axis=1) > random.random(age.shape)
patients["diagnosis"] = np.array(diagnoses)[drawn.argmax(axis=1)]

stays = patients.loc[patients.index.repeat(random.choice([1, 2, 3], len(patients), p=[0.7, 0.2, 0.1]))]
stays = stays.assign(days=random.poisson(5, len(stays)) + 1).reset_index(drop=True)
stays.sample(4, random_state=0)

# %% [markdown]
# ## What a neighbor could find out
#
# A neighbor knows age, sex and district, and that somebody was in hospital. Counted in patients, not in stays: a patient with three
# stays does not hide among themselves.

# %%
known = ["age", "sex", "district"]
before = sfumato.measure(stays, known, ["diagnosis"], unit="patient")
print("fewest patients who share age, sex and district:", before.groups.smallest_in_persons)
print(f"stays that are alone in them: {before.uniqueness.n_unique} of {before.n_records:,}")

# %% [markdown]
# ## Say what must hold
#
# k-anonymity alone does not hide a diagnosis: if all twenty patients of a group have HIV, it does not matter which of them is the
# neighbor. So three things are asked of every group: at least 10 patients, at least 3 different diagnoses, and shares of diagnoses that
# are not too far from those of the whole registry.

# %%
anonymizer = sfumato.MondrianAnonymizer(
    k=10,
    quasi_identifiers=known,
    keep=["diagnosis", "days"],
    criteria=[
        sfumato.KAnonymity(10, unit="patient"),
        sfumato.LDiversity(3, "diagnosis"),
        sfumato.TCloseness(0.35, "diagnosis"),
    ],
    representative="range",
)
release = anonymizer.fit(stays).release(stays, shuffle=True)
release.table.head(4)

# %% [markdown]
# The patient numbers are gone, the order of the rows is random, and ages and districts are those of a whole group. What was asked for
# is counted again on the finished table, by code apart from the engine. If it did not hold, there would be an error and no release:

# %%
for criterion in anonymizer.criteria:
    print(f"{criterion}: {release.measures[str(criterion)]:.3g} reached")

# %% [markdown]
# ## Attack it
#
# An audit plays the neighbor, by several methods. What counts is the advantage: how much more often an attacker is right than one who
# never saw the release.


# %%
def advantages(table, released):
    found = sfumato.audit(
        table, released, quasi_identifiers=known, sensitive=["diagnosis"], gate={"min_k": 10, "min_l": 3}
    )
    assert found.passed
    return {risk.title: risk.advantage for risk in found.risks}


first = advantages(stays, release.table)
pd.DataFrame({"advantage": first}).round(3)

# %% [markdown]
# Every condition is met, and still one attack succeeds: *singling out*. `days` was kept as it is, so a group of 12 often has exactly
# one stay of 9 days for asthma. Nobody needs exact days, so they become three bands:

# %%
bands = ["1-3", "4-7", "8 or more"]
coarser = stays.assign(days=pd.cut(stays["days"], [0, 3, 7, 99], labels=bands).astype(str))
release = anonymizer.fit(coarser).release(coarser, shuffle=True)
second = advantages(coarser, release.table)
assert first["singling out"] > 0.2 and second["singling out"] < 0.05
pd.DataFrame({"exact days": first, "bands of days": second}).round(3)

# %% [markdown]
# What remains is the neighbor's inference: knowing age, sex and district, the most frequent diagnosis of the group is a somewhat
# better guess than that of the whole registry. Some of this is what the researchers want to know, that illness depends on age. A
# smaller t makes it less, and the answer below worse.

# %% [markdown]
# ## Does it answer the question?
#
# The researchers get ranges of ages. They take the middle of each range. The lines are the raw registry, the dots the release:


# %%
def middle(label):
    ends = [int(part) for part in str(label).replace(" and under", "").replace(" and over", "").split("-")]
    return sum(ends) / len(ends)


ages = [16, 30, 40, 50, 60, 91]
released_age = release.table["age"].map(middle).astype(float)
fig, axes = plt.subplots(figsize=(6.5, 3.6))
for name, color in [("heart failure", "tab:red"), ("diabetes", "tab:orange"), ("depression", "tab:blue")]:
    raw = (stays["diagnosis"] == name).groupby(pd.cut(stays["age"], ages)).mean()
    released = (release.table["diagnosis"] == name).groupby(pd.cut(released_age, ages)).mean()
    assert abs(raw - released).max() < 0.08
    axes.plot(range(len(raw)), raw, color=color, label=name)
    axes.scatter(range(len(raw)), released, color=color)
axes.set_xticks(range(len(ages) - 1), [f"{low + 1}-{high}" for low, high in pairwise(ages)])
axes.set(xlabel="age", ylabel="share of the stays")
axes.legend()

# %% [markdown]
# The dots follow the lines: heart failure and diabetes rise with age, depression falls. Researchers who need single years of
# age, or rare diagnoses, get a worse answer. Those questions are better asked inside the hospital.
#
# ## Before it leaves the house
#
# - A second copy next year is a new question: two releases together can single out people whom neither does alone
#   ([release data that keeps arriving](../how-to/release-batches.md)).
# - `sfumato evidence` packs the audit for the ethics board ([sign off a release](../how-to/sign-off-a-release.md)).
# - What the criteria promise, and what they do not: [what each guarantee means](../what-each-guarantee-means.md).

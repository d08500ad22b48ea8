# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # Credit scoring at a bank
#
# A bank wants an outside team to build its scoring model. The team needs past applications and who repaid; the bank does not want the
# model to reveal who its customers are. **How large can k be before the scores get worse, and who pays for it?**
#
# The applicants are invented here: people of sfumato's census generator, and a rule with noise for who repays.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import sfumato
from sfumato.datasets import make_census

random = np.random.default_rng(7)
people = make_census(6_000, as_frame="pandas", missing=0, random_state=7).data
applicants = people[["age", "sex", "birth_country", "marital_status", "work_class", "hours_per_week"]].copy()
applicants["monthly_rent"] = people["monthly_rent"].round(-1).astype(int)
applicants["amount"] = (random.lognormal(8.6, 0.7, len(people))).round(-2).astype(int)
strength = (
    0.05 * (applicants["age"] - 38).clip(-18, 20)
    + 0.05 * (applicants["hours_per_week"] - 38)
    - 0.9 * np.log(applicants["amount"] / 6000)
    - 0.8 * np.log(applicants["monthly_rent"] / 750)
    + 0.6 * (applicants["marital_status"] == "married")
)
repaid = pd.Series(np.where(strength + random.logistic(0, 1, len(people)) > -0.6, "yes", "no"), name="repaid")
applicants.head(4)

# %% [markdown]
# ## How exposed are the applicants?
#
# No column is a name. But an employer or a neighbor may know several of them, and together they are almost a name:

# %%
known = ["age", "sex", "birth_country", "marital_status", "work_class", "hours_per_week"]
before = sfumato.measure(applicants, quasi_identifiers=known)
print(f"{before.uniqueness.n_unique:,} of {before.n_records:,} applicants are the only one with their values")

# %% [markdown]
# ## The model, as it is and from groups
#
# `AnonymizedClassifier` wraps the bank's own pipeline. It trains it once, groups applicants whom it treats alike, at least k in each
# group, and trains it again on what the people of each group share. It then scores raw applications, so nothing changes in the branch.

# %%
text = ["sex", "birth_country", "marital_status", "work_class"]
as_numbers = make_column_transformer(
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), text), remainder="passthrough"
)
model = make_pipeline(as_numbers, RandomForestClassifier(40, random_state=0))

train, test, repaid_train, repaid_test = train_test_split(applicants, repaid, test_size=0.4, random_state=0)
raw = model.fit(train, repaid_train)
protected = sfumato.AnonymizedClassifier(model, k=100, random_state=0).fit(train, repaid_train)


def auc(scorer, X, y):
    return roc_auc_score(y == "yes", scorer.predict_proba(X)[:, 1])


for name, scorer in {"from raw records": raw, "from groups of 100": protected}.items():
    print(f"{name:20} AUC {auc(scorer, test, repaid_test):.3f}")
print("smallest group:", protected.anonymizer_.group_sizes_.min())

# %% [markdown]
# ## Which k?
#
# `frontier` asks for several k at once, on the same splits. Its attacker has the model and some records, and says who was among the
# customers it learned from. Guessing is right half of the time.

# %%
found = sfumato.frontier(
    applicants, repaid, model, {"k": [10, 100, 500]}, attacks=("threshold", "random_forest"), n_splits=2
)
table = pd.DataFrame(
    {
        "AUC": {row.name: row.auc.value for row in found.rows},
        "member guessed": {row.name: row.strongest("membership").rate.value for row in found.rows},
    }
)
assert table["member guessed"].iloc[1:].max() < 0.55 < table["member guessed"].iloc[0]
table.round(3)

# %%
fig, axes = plt.subplots(figsize=(6.5, 3.4))
axes.scatter(table["member guessed"], table["AUC"], color=["tab:red"] + ["tab:blue"] * (len(table) - 1))
for name, row in table.iterrows():
    place = row["member guessed"], row["AUC"]
    axes.annotate(name.removesuffix(", model"), place, xytext=(6, 4), textcoords="offset points")
axes.axvline(0.5, linestyle=":", color="gray")
axes.set(xlabel="how often an attacker says correctly who was a customer", ylabel="AUC of the scores")
axes.margins(0.15)

# %% [markdown]
# Upper left is better. The raw forest remembers its customers. Every protected one is near the dotted line, where the attacker
# guesses, and its AUC is a little lower or the same. Two splits are few: differences of a hundredth between two k are noise
# (`found.rows[0].auc` has the interval). The choice between k = 10 and k = 100 costs this bank next to nothing, so it takes 100.

# %% [markdown]
# ## Who pays for it?
#
# An average can hide a minority. Applicants who were born abroad are few, so their groups are wider:

# %%
abroad = (test["birth_country"] != train["birth_country"].mode()[0]).to_numpy()
rows = {}
for name, part in {"born here": ~abroad, "born abroad": abroad}.items():
    there = test[part], repaid_test[part]
    rows[name] = {"applicants": part.sum(), "AUC, raw": auc(raw, *there), "AUC, k = 100": auc(protected, *there)}
pd.DataFrame(rows).T.round(3).astype({"applicants": int})

# %% [markdown]
# ## What the bank can say
#
# - The model learned from groups of at least 100 applicants, and that was counted on what it learned from.
# - The attackers above gained next to nothing. That is a measurement, not a proof: for a proof use a
#   [private learner](../learning-with-differential-privacy.md), and compare it in the same call with `"epsilon": [1]`.
# - The scores of both parts of the population are listed, not only the average.
#
# Next: [compare protections](../how-to/compare-protections.md) of other kinds, and [attack your model](../attacking-a-model.md) with
# shadow models, which are stronger than the attackers here.

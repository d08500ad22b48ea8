# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # A survey's public-use file
#
# A statistics office has asked people about work and income and wants to put the records on its site for everyone. **Which columns are
# the danger, what must be coarser, and do the tables that journalists will make of the file stay true?**
#
# The survey is Adult, an extract of the US census of 1994 that is public already: 6,000 of its people.

# %%
import matplotlib.pyplot as plt
import pandas as pd

import sfumato
from sfumato.datasets import load_adult

survey = load_adult(as_frame="pandas").frame.dropna().sample(6_000, random_state=3).reset_index(drop=True)
survey = survey.drop(columns=["education-num", "capital-gain", "capital-loss"])
survey.head(3)

# %% [markdown]
# ## Who would stick out?
#
# A file for everyone meets readers who know somebody in it. `measure` counts who is alone with their values. Being alone in the sample is
# not being alone in the country, so the weights of the survey (`fnlwgt`: how many people a record stands for) give an estimate of that.

# %%
columns = [
    "age",
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native-country",
]
before = sfumato.measure(survey, columns, weights="fnlwgt").uniqueness
print(f"alone in the sample: {before.share:.1%} of the records")
for estimate in before.estimates:
    print(f"alone in the country: {estimate.share:.1%}, by the estimator {estimate.estimator}")

# %% [markdown]
# The estimators disagree widely, because each assumes something else about people whom the sample does not show. An office that must
# be careful takes the highest. Which column is to blame?

# %%
alone = {
    name: sfumato.measure(survey, [column for column in columns if column != name]).uniqueness.n_unique
    for name in columns
}
pd.DataFrame({"alone without this column": alone}).sort_values("alone without this column")

# %% [markdown]
# Age matters most, then occupation and education. No single column can be dropped to solve it: each of them is why people want the file.

# %% [markdown]
# ## Write down what must hold
#
# A policy says what is protected and how well. The gate says what must hold, or nothing is released: groups of at least 10, and no
# attack that is right 10 percentage points more often than it would be without the file.

# %%
policy = sfumato.Policy.of(
    columns={
        "target": "income",
        "identifiers": ["fnlwgt"],
        "quasi_identifiers": [*columns, "hours-per-week"],
        "subgroups": ["sex"],
    },
    method={"name": "model-guided", "k": 10},
    model={"name": "logistic-regression"},
    audit={"level": "quick", "leave_out": ["network"]},
    gate={"min_k": 10, "max_attack_advantage": 0.1, "min_accuracy_kept": 0.95},
)
done = sfumato.run(policy, table=survey)
for check in done.audit.gate:
    print("met:" if check.passed else "NOT met:", check.sentence)

# %% [markdown]
# All conditions are met. `done.report("report.html")` writes the report for the people who decide, and `policy.to_toml()` the file
# that repeats this run with `sfumato run`.

# %%
released = done.release.to_pandas()
released.head(3)

# %% [markdown]
# ## What do readers find in it?
#
# Everybody in a group has the same values, typical ones in a combination that nobody has. So columns keep their kinds, and readers tabulate as they
# always do. A single record may look odd, such as a wife who is male: nobody is behind it. How many people earn more than 50,000 dollars, by education? The circles are the survey, the dots the file:


# %%
def earning_more(table):
    by_education = (table["income"] == ">50K").groupby(table["education"].astype(str))
    return pd.DataFrame({"share": by_education.mean(), "people": by_education.size()})


tables = earning_more(survey)
tables["share in the file"] = earning_more(released)["share"]
tables = tables[tables["people"] >= 100].sort_values("share")
fig, axes = plt.subplots(figsize=(6.5, 3.8))
axes.hlines(tables.index, tables["share"], tables["share in the file"], color="gray", linewidth=1)
axes.scatter(tables["share"], tables.index, facecolors="none", edgecolors="tab:blue", label="survey")
axes.scatter(tables["share in the file"], tables.index, color="tab:blue", label="public-use file")
axes.set_xlabel("share that earns more than 50,000 dollars")
axes.legend()

# %% [markdown]
# The order of the levels is nearly that of the survey. Single shares move where a level is small and its people share groups with
# others. Print the numbers before you publish, and say in the documentation of the file what is not to be read from it:

# %%
tables["moved by"] = tables["share in the file"] - tables["share"]
assert tables["share"].corr(tables["share in the file"]) > 0.8
tables.round(3)

# %% [markdown]
# ## Before it is on the site
#
# - A file for everyone cannot be taken back. Read [what k-anonymity does not protect](../what-k-anonymity-does-not-protect.md) first.
# - Next year's file is about some of the same people: [release data that keeps arriving](../how-to/release-batches.md).
# - If few large tables are all that readers need, [noisy counts](../releases-with-epsilon.md) promise more, for any attacker.

# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # A form to minimize
#
# Parents who want a place in a nursery school fill in a form with eight questions: about their jobs, their money, their family, their
# social and health situation. A rule ranks the applications. **Which of these questions does the rule need, and how exactly?**
#
# The table is Nursery: the 12,960 applications that these questions allow, each with the rank that a rule gave it which was made for
# nursery schools in Ljubljana in the 1980s.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import sfumato
from sfumato.datasets import load_nursery

X, y = load_nursery(return_X_y=True, as_frame="pandas")
y = y.astype(str).replace({"recommend": "very_recom"})  # two applications alone are no class
sample, later, sample_y, later_y = train_test_split(X, y, train_size=4_000, random_state=0, stratify=y)
pd.set_option("display.max_colwidth", None)
pd.DataFrame({"answers": {name: ", ".join(X[name].astype(str).unique()) for name in X}})

# %% [markdown]
# 4,000 of them play the old applications that the town keeps to learn from. The others stand for parents who have not applied yet: if the
# town asks less from now on, their full answers never exist.

# %% [markdown]
# ## How coarse may it be?
#
# A *minimizer* joins answers that matter little for the ranking, until a question has one answer left and need not be asked. Each
# setting gives another balance. The risk is how often an attacker guesses a personal answer right from what is still collected.

# %%
personal = ["parents", "finance", "social", "health"]
swept = sfumato.sweep_minimizers(
    sfumato.PrivacyAwareTree(min_samples_leaf=20, personal=personal),
    sample,
    sample_y,
    grid={"alpha": [0.1, 0.3, 0.5, 0.7, 0.9], "max_leaves": [4, 8, 16, 32]},
    estimator=DecisionTreeClassifier(random_state=0),
)
chosen = swept.coarsest(max_loss=0.05)
table = swept.to_frame()

# %%
fig, axes = plt.subplots(figsize=(6.5, 3.4))
axes.scatter(table["test_risk"], table["test_error"], color="tab:gray", s=18, label="a setting")
axes.scatter(chosen.test_risk, chosen.test_error, color="tab:red", label="chosen")
full, nothing = swept.limits
axes.annotate(
    "the form of today", (full.test_risk, full.test_error), xytext=(0, 8), textcoords="offset points", ha="right"
)
axes.annotate("no question", (nothing.test_risk, nothing.test_error), xytext=(8, -4), textcoords="offset points")
axes.set(xlabel="personal answers that an attacker guesses", ylabel="applications ranked wrongly")
axes.legend()

# %% [markdown]
# Lower left is better. Today's form ranks best and shows everything. Asking nothing leaves the attacker with guesses, and the town, too.
# The town accepts five percentage points more of wrong rankings, and takes the setting that reveals least within that:

# %%
generalization = chosen.generalization
generalization

# %% [markdown]
# Two questions are gone: the form of the family and the finances of the parents. The number of children and the social situation
# are asked more coarsely. Read this with the people who decide: the minimizer looked at numbers, not at the law.

# %% [markdown]
# ## Ask one family only what matters
#
# What everybody may be asked is one thing. For one family, the ranking is often settled after few answers, and the rest need not be
# asked at all. With a decision tree or a linear model this is exact: no further answer could change the outcome.

# %%
model = DecisionTreeClassifier(max_leaf_nodes=30, random_state=0).fit(generalization.codes(sample), sample_y)
told = sfumato.Questionnaire(generalization, model).interview(later)
asked_of_all = sum(number > 1 for number in generalization.n_buckets)
assert told.n_changed == 0
as_before = (model.predict(generalization.codes(later)) == later_y).mean()
print(f"ranked as by the full rule: {as_before:.1%} of {len(later):,} later applications")
print(f"questions: {X.shape[1]} today, {asked_of_all} on the new form")
print(f"on average, if the form stops when the ranking is settled: {told.n_asked.mean():.1f}")
print("rankings that stopping early changed:", told.n_changed)

# %%
fig, axes = plt.subplots(figsize=(6.5, 2.8))
counts = pd.Series(told.n_asked).value_counts(normalize=True).sort_index()
axes.bar(counts.index, counts, color="tab:blue")
axes.axvline(8, color="tab:red", linestyle=":", label="today")
axes.set(xlabel="questions that a family is asked", ylabel="share of families", xlim=(0.4, 8.6))
axes.legend()

# %% [markdown]
# ## The form itself
#
# One HTML file that loads nothing and sends buckets, never the exact answer. It asks one question after the other and stops by itself:

# %%
form = generalization.to_form(
    model=model, title="A place in a nursery school", titles={"has_nurs": "Your child's care today"}
)
Path("form.html").write_text(form, encoding="utf-8")
print(f"form.html has {len(form) // 1024} KB;", "the first question:", generalization.ask({}, model).attribute)

# %% [markdown]
# Where to go on: [minimize a form](../how-to/minimize-a-form.md) does this on the command line, with a preview for parents.
# [Ask a person only what matters](../asking-less.md) says what the number of questions tells, and to whom.

  // Everything below is the same for every model. An answer is the label of a bucket, or a value; null is no answer.

  const attributes = generalization.attributes;
  const collected = attributes.map((attribute) => attribute.labels.length > 1);
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

  /** The bucket of every attribute: 0 where there is one only, -1 where the person was not asked. */
  function codesOf(answers) {
    const strange = Object.keys(answers).find((name) => !attributes.some((attribute) => attribute.name === name));
    if (strange !== undefined) throw new TypeError(`${strange}: not an attribute of this generalization`);
    return attributes.map((attribute, place) => {
      if (!collected[place]) return 0;
      if (!Object.prototype.hasOwnProperty.call(answers, attribute.name)) return -1;
      const found = attribute.labels.indexOf(answers[attribute.name]);
      return found >= 0 ? found : generalization.bucketOf(attribute.name, answers[attribute.name]);
    });
  }

  /** The first place whose score is the least, up to rounding. */
  function firstBest(scores) {
    const least = Math.min(...scores);
    return scores.findIndex((score) => score <= least + 1e-9);
  }

  // -- a decision tree: every leaf is a box of buckets, and has a class

  const holds = (leaf, place, bucket) => !leaf.inside[place] || leaf.inside[place].includes(bucket);
  const isReached = (leaf, codes) => codes.every((code, place) => code < 0 || holds(leaf, place, code));

  /** Pairs of leaves of different classes that only one attribute tells apart, and that attribute. */
  const borders = [];
  if (decision.kind === "tree") {
    decision.leaves.forEach((one, first) => {
      decision.leaves.slice(first + 1).forEach((other) => {
        if (one.decision === other.decision) return;
        const apart = Object.keys(one.inside).filter(
          (place) => other.inside[place] && !one.inside[place].some((bucket) => other.inside[place].includes(bucket)),
        );
        if (apart.length === 1) borders.push([one, other, Number(apart[0])]);
      });
    });
  }

  function openOfTree(codes) {
    const reached = new Set(decision.leaves.filter((leaf) => isReached(leaf, codes)));
    const open = borders.filter(([one, other]) => reached.has(one) && reached.has(other)).map(([, , place]) => place);
    return [...new Set(open)].sort((one, other) => one - other);
  }

  /** The attribute after whose answer the class is surest: the least Gini impurity in the mean. */
  function nextOfTree(codes, open) {
    const weightInside = (leaf, place) => sum(decision.weights[place].filter((_, bucket) => holds(leaf, place, bucket)));
    const chances = decision.leaves.map((leaf) => {
      if (!isReached(leaf, codes)) return 0;
      return codes.reduce((chance, code, place) => (code < 0 ? chance * weightInside(leaf, place) : chance), 1);
    });
    const scores = open.map((place) =>
      sum(
        decision.weights[place].map((weight, bucket) => {
          const shares = decision.classes.map(() => 0);
          decision.leaves.forEach((leaf, at) => {
            if (chances[at] > 0 && holds(leaf, place, bucket)) {
              shares[leaf.decision] += chances[at] / weightInside(leaf, place);
            }
          });
          return weight * (1 - sum(shares.map((share) => share * share)));
        }),
      ),
    );
    return open[firstBest(scores)];
  }

  // -- a linear model: every bucket adds to the score of each class

  function scoresOf(codes) {
    return decision.classes.map((_, c) =>
      sum(decision.scores.map((own, place) => (codes[place] < 0 ? 0 : own[codes[place]][c]))) + decision.intercept[c],
    );
  }

  /** The class that leads by more than the attributes not asked can take away; -1 if there is none. */
  function settledByLead(codes) {
    const known = scoresOf(codes);
    return known.findIndex((score, c) =>
      known.every((other, d) => {
        if (c === d) return true;
        const least = sum(
          decision.scores.map((own, place) => (codes[place] < 0 ? Math.min(...own.map((row) => row[c] - row[d])) : 0)),
        );
        return score - other + least > decision.tolerance;
      }),
    );
  }

  /** What to ask next: { attribute, decision, open }. The attribute is null once the decision is settled. */
  function next(answers) {
    const codes = codesOf(answers);
    const name = (place) => attributes[place].name;
    const done = (c) => ({ attribute: null, decision: decision.classes[c], open: [] });
    if (decision.kind === "tree") {
      const open = openOfTree(codes);
      if (!open.length) return done(decision.leaves.find((leaf) => isReached(leaf, codes)).decision);
      return { attribute: name(nextOfTree(codes, open)), decision: null, open: open.map(name) };
    }
    const settled = settledByLead(codes);
    const open = decision.order.filter((place) => codes[place] < 0);
    if (settled >= 0) return done(settled);
    if (!open.length) {
      const scores = scoresOf(codes);
      return done(scores.indexOf(Math.max(...scores)));
    }
    return { attribute: name(open[0]), decision: null, open: open.map(name) };
  }

  return { next, classes: decision.classes, most: collected.filter(Boolean).length };
})();

if (typeof module !== "undefined" && module.exports) module.exports.questions = questions;

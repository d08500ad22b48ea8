(() => {
  "use strict";
  // Everything is asked of the document: a question may be called like a method of the form, and would hide it.
  const result = document.querySelector(".result");

  const choose = (question, bucket) => {
    const select = question.querySelector("select");
    if (select) select.value = String(select.options[bucket + 1].value);
    else question.querySelectorAll("input[type=radio]")[bucket].checked = true;
  };

  for (const question of document.querySelectorAll("fieldset")) {
    const attribute = generalization.attributes[Number(question.dataset.attribute)];
    const exact = question.querySelector(".exact input");
    if (!exact) continue;
    const said = question.querySelector(".exact output");
    // What is typed has no name, so no form can send it; only the bucket that it chooses is sent.
    const place = () => {
      said.classList.remove("wrong");
      if (exact.value.trim() === "") {
        said.textContent = "";
        return;
      }
      try {
        const bucket = generalization.bucketOf(attribute.name, exact.value);
        choose(question, bucket);
        said.textContent = `→ ${shown[Number(question.dataset.attribute)][bucket]}`;
      } catch (error) {
        said.classList.add("wrong");
        said.textContent = words.wrong.replace("{}", words.expected[error.expected] || error.expected);
      }
    };
    exact.addEventListener("input", place);
    exact.addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault(); // Enter takes the bucket over; it does not send the form
    });
    question.addEventListener("change", (event) => {
      if (event.target === exact) return;
      exact.value = "";
      place();
    });
  }

  const forget = () => {
    for (const exact of document.querySelectorAll(".exact input")) exact.value = "";
    for (const said of document.querySelectorAll(".exact output")) said.textContent = "";
  };

  // With a model, one question at a time; what is not asked is disabled, so that it is not sent.
  const steps = document.querySelector(".steps");
  const send = document.querySelector(".send");
  const fieldOf = (name) =>
    [...document.querySelectorAll("fieldset")].find(
      (field) => generalization.attributes[Number(field.dataset.attribute)].name === name,
    );
  const isAsked = (field) => !field.disabled;
  const answers = () => Object.fromEntries(new FormData(document.querySelector("form")));

  function askNext() {
    const found = questions.next(answers());
    const asked = [...document.querySelectorAll("fieldset")].filter(isAsked).length;
    const status = steps.querySelector("p");
    steps.querySelector("button").hidden = found.attribute === null;
    send.hidden = found.attribute !== null;
    if (found.attribute === null) {
      status.textContent = words.settled.replace("{}", asked).replace("{}", questions.most);
      send.querySelector("button").focus();
      return;
    }
    const field = fieldOf(found.attribute);
    field.disabled = false;
    field.hidden = false;
    steps.before(field); // below those that were asked before
    status.textContent = words.question.replace("{}", asked + 1).replace("{}", questions.most);
    const first = field.querySelector("input, select");
    if (asked) first.focus();
  }

  if (steps) {
    for (const field of document.querySelectorAll("fieldset")) {
      field.disabled = true;
      field.hidden = true;
      // An answer that is changed takes back the questions that followed from it.
      field.addEventListener("change", () => {
        const asked = [...document.querySelectorAll("fieldset")].filter(isAsked);
        for (const later of asked.slice(asked.indexOf(field) + 1)) {
          later.disabled = true;
          later.hidden = true;
          for (const input of later.querySelectorAll("input[type=radio]")) input.checked = false;
          for (const select of later.querySelectorAll("select")) select.value = "";
        }
        steps.querySelector("button").hidden = false;
        send.hidden = true;
      });
    }
    steps.querySelector("button").addEventListener("click", () => {
      if (document.querySelector("form").reportValidity()) askNext();
    });
    askNext();
  }

  document.addEventListener("submit", (event) => {
    forget();
    if (!result) return; // the browser sends the named fields: buckets alone
    event.preventDefault();
    const record = Object.fromEntries(new FormData(event.target));
    const text = JSON.stringify(record, null, 2);
    result.hidden = false;
    result.querySelector("pre").textContent = text;
    result.focus();
    document.dispatchEvent(new CustomEvent("sfumato:record", { detail: record }));
  });

  if (result) {
    result.querySelector("button").addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([result.querySelector("pre").textContent], { type: "application/json" }));
      link.download = "record.json";
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }
})();

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
        said.textContent = `→ ${attribute.labels[bucket]}`;
      } catch (error) {
        said.classList.add("wrong");
        said.textContent = error.message.slice(attribute.name.length + 2).replace(/^e/, "E") + ".";
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

// SPDX-License-Identifier: Apache-2.0
// Every page works without this. With it, forms swap parts of the page instead of loading it, parts that carry
// data-on are renewed when the studio says that something changed, and sliders move a mark at once.
"use strict";

const root = document.documentElement;
const parsed = (text) => new DOMParser().parseFromString(text, "text/html");
const busy = new Set();

// On narrow screens the row of screens is wider than the window: show the one that is open.
function here() {
  const rail = document.getElementById("rail"), now = rail?.querySelector("[aria-current]");
  if (now) rail.scrollLeft += Math.max(0, now.getBoundingClientRect().right - rail.getBoundingClientRect().right);
}
here();

// -- swapping ------------------------------------------------------------------------------------------------------

function put(id, fresh) {
  const old = document.getElementById(id), renewed = fresh.getElementById(id);
  if (!old || !renewed || old.isEqualNode(renewed)) return;
  const inside = old.contains(document.activeElement) ? document.activeElement : null;
  if (inside && inside.matches("input:not([type=range]):not([type=radio]), textarea")) return; // somebody is writing
  const focused = inside && (inside.id || inside.name);
  const stop = old.querySelector("input[type=range]")?.value;
  const open = [...old.querySelectorAll("details")].map((one) => one.open);
  old.replaceWith(document.adoptNode(renewed));
  if (id === "rail") here();
  const again = focused && (document.getElementById(focused) || renewed.querySelector(`[name="${CSS.escape(focused)}"]`));
  if (again) again.focus();
  renewed.querySelectorAll("details").forEach((one, place) => { one.open = open[place] ?? one.open; });
  const slider = renewed.querySelector("input[type=range]");
  if (slider && stop !== undefined) slider.value = stop;
  if (slider) move(slider);
}

// Renew every part that wants to hear of an event; one request serves them all.
async function renew(event) {
  const parts = [...document.querySelectorAll("[data-on]")].filter((one) => one.id && one.dataset.on.split(" ").includes(event));
  if (!parts.length) return;
  if (busy.has(event)) { busy.add(event + "+"); return; }
  busy.add(event);
  try {
    const from = parts[0].dataset.from || location.pathname + location.search; // a preview is shown once, to who asked
    const answer = await fetch(from, { headers: { accept: "text/html" } });
    if (answer.ok) {
      const fresh = parsed(await answer.text());
      parts.forEach((one) => put(one.id, fresh));
    }
  } catch { /* the stream says when the studio has stopped */ }
  busy.delete(event);
  if (busy.delete(event + "+")) renew(event);
}

async function send(form, part) {
  const body = new URLSearchParams(new FormData(form));
  const answer = await fetch(form.action, { method: "POST", body });
  const fresh = parsed(await answer.text());
  if (part) { put(part, fresh); renew("drawn"); return; } // what came before the part was there to listen
  const heading = document.querySelector("h1")?.textContent;
  const held = document.activeElement?.id;
  for (const id of ["main", "rail", "job", "doc", "undo"]) {
    const old = document.getElementById(id), renewed = fresh.getElementById(id);
    if (old && renewed) old.replaceWith(document.adoptNode(renewed));
  }
  if (answer.url !== location.href && answer.redirected) history.pushState({}, "", answer.url);
  document.title = fresh.title;
  here();
  document.querySelectorAll("input[type=range]").forEach(move);
  const same = held && document.getElementById(held);
  if (same && document.querySelector("h1")?.textContent === heading) same.focus();
  else document.getElementById("main").focus();
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("form[data-swap]")) return;
  event.preventDefault();
  send(form, form.dataset.swap);
});
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-auto]");
  if (form) form.requestSubmit();
});
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-part]");
  if (!link) return;
  event.preventDefault();
  const answer = await fetch(link.href);
  put(link.dataset.part, parsed(await answer.text()));
});
addEventListener("popstate", () => location.reload());
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); }); // a preview must not come back

// -- events --------------------------------------------------------------------------------------------------------

let stream = null;
function listen() {
  if (stream || document.hidden) return;
  stream = new EventSource("/events");
  for (const name of ["job", "point", "policy", "count", "drawn"]) stream.addEventListener(name, () => renew(name));
  stream.addEventListener("hello", (event) => { // what happened before anybody listened
    if (event.data !== document.body.dataset.changes) ["policy", "job", "count"].forEach(renew);
  });
  stream.addEventListener("stopped", stopped);
}
function stopped() {
  stream?.close();
  const main = document.getElementById("main"), box = document.createElement("div");
  const title = document.createElement("h1"), hint = document.createElement("p");
  box.className = "empty"; box.setAttribute("role", "status");
  title.textContent = document.body.dataset.stopped; hint.textContent = document.body.dataset.stoppedHint;
  box.append(title, hint); main.replaceChildren(box); main.focus();
}
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { stream?.close(); stream = null; } else { document.body.dataset.changes = ""; listen(); }
});
listen();

// -- sliders: data attributes have one entry for each stop, separated by "|" ---------------------------------------

const entry = (element, name, stop) => element.dataset[name].split("|")[stop];

function move(slider) {
  const stop = Number(slider.value), last = Math.max(Number(slider.max), 1), x = (stop / last) * 100;
  for (const line of document.querySelectorAll("[data-markline]")) {
    line.setAttribute("x1", x + "%"); line.setAttribute("x2", x + "%");
  }
  for (const mark of document.querySelectorAll("[data-mark]")) {
    const y = entry(mark, "mark", stop), circle = mark.querySelector("circle"), text = mark.querySelector("text");
    mark.toggleAttribute("hidden", y === "");
    if (y === "") continue;
    for (const [element, places] of [[circle, ["cx", "cy"]], [text, ["x", "y"]]]) {
      element.setAttribute(places[0], x + "%"); element.setAttribute(places[1], y + "%");
    }
    text.setAttribute("dx", x > 70 ? -10 : 10); text.setAttribute("text-anchor", x > 70 ? "end" : "start");
    text.textContent = entry(mark, "text", stop);
  }
  for (const part of document.querySelectorAll("[data-each]")) part.textContent = entry(part, "each", stop);
  for (const part of document.querySelectorAll("[data-value]")) part.value = entry(part, "value", stop);
  for (const part of document.querySelectorAll("[data-wide]")) part.setAttribute("x2", entry(part, "wide", stop) + "%");
  for (const part of document.querySelectorAll("[data-only]")) part.hidden = !part.dataset.only.split("|").includes(String(stop));
  slider.setAttribute("aria-valuetext", entry(slider, "says", stop));
}
document.addEventListener("input", (event) => { if (event.target.matches("input[type=range][data-says]")) move(event.target); });
document.addEventListener("change", (event) => { // the address names the stop, so that it can be passed on
  if (event.target.matches("input[type=range][data-says]")) {
    const address = new URL(location.href);
    address.searchParams.set("at", event.target.value);
    history.replaceState({}, "", address);
  }
});
document.querySelectorAll("input[type=range][data-says]").forEach(move);

// -- small things --------------------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.key !== "z" || event.shiftKey) return;
  if (event.target.matches("input:not([type=range]), textarea, select")) return;
  const form = document.querySelector("form[data-undo]");
  if (form) { event.preventDefault(); form.requestSubmit(); }
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-theme-switch]");
  if (!button) return;
  event.preventDefault();
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  fetch("/theme", { method: "POST", body: new URLSearchParams({ theme: root.dataset.theme }), redirect: "manual" });
});

// Comfort for people with scripts: copying, filtering while typing, keys. Every page works without it.
"use strict";

for (const button of document.querySelectorAll("button.copy")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const label = button.textContent;
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  });
}

for (const input of document.querySelectorAll("input[data-filter]")) {
  const rows = document.querySelectorAll(`#${input.dataset.filter} tbody tr`);
  input.addEventListener("input", () => {
    const text = input.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(text);
  });
}

for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => { if (!confirm(form.dataset.confirm)) event.preventDefault(); });
}

// What a form would do is said again when it has changed.
for (const form of document.querySelectorAll("form[data-explain]")) {
  form.addEventListener("change", async () => {
    const body = new URLSearchParams(new FormData(form));
    body.set("explain", "1");
    const answer = await fetch(form.action, { method: "POST", body }).catch(() => null);
    const page = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
    const said = page?.getElementById(form.dataset.explain);
    if (said) document.getElementById(said.id).textContent = said.textContent;
  });
}

// What still changes is loaded again, while somebody looks at it.
async function refresh() {
  const shown = document.querySelector("[data-live]");
  if (!shown) return;
  if (!document.hidden && !shown.contains(document.activeElement)) {
    const answer = await fetch(location.href).catch(() => null);
    const page = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
    const next = page?.getElementById(shown.id);
    if (next) shown.replaceWith(next);
  }
  setTimeout(refresh, Number(shown.dataset.live));
}
setTimeout(refresh, 1000);

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !typing) {
    event.preventDefault();
    document.querySelector("[data-key='/']").focus();
  } else if (event.key === "Escape" && typing) {
    document.activeElement.blur();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !typing) {
    const rows = [...document.querySelectorAll("a.row")].filter((row) => row.offsetParent);
    const at = rows.indexOf(document.activeElement);
    const next = rows[at < 0 ? 0 : at + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) { event.preventDefault(); next.focus(); }
  }
});

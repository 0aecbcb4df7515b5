// Comfort for people with scripts: copying, filtering while typing, keys. Every page works without it.
"use strict";

// What this script says, in the language of the page: the page has the translations of the texts in these calls.
const texts = JSON.parse(document.documentElement.dataset.texts ?? "{}");
const translated = (text, values = {}) => (texts[text] ?? text).replace(/%\((\w+)\)s/g, (place, name) => values[name] ?? place);

for (const button of document.querySelectorAll("button.copy")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    const say = (done) => { button.classList.toggle("done", done); button.title = done ? translated("Copied") : translated("Copy"); button.ariaLabel = button.title; };
    say(true);
    setTimeout(say, 1500, false);
  });
}

// What a form has made is shown once: to load its page again asks for that page, and does not send the form again.
history.replaceState(history.state, "", location.href);

// The pages of the administration stand beside the content, and are folded where there is no room beside it.
const beside = matchMedia("(min-width: 68rem)");
const fold = () => { for (const pages of document.querySelectorAll(".sections")) pages.open = beside.matches; };
beside.addEventListener("change", fold);
fold();

for (const input of document.querySelectorAll("input[data-filter]")) {
  const rows = document.querySelectorAll(`#${input.dataset.filter} tbody tr`);
  input.addEventListener("input", () => {
    const text = input.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(text);
  });
}

// Results follow what is typed: they are the part of the same page that has this id.
for (const form of document.querySelectorAll("form[data-results]")) {
  let asked = 0;
  form.addEventListener("input", async () => {
    const mine = ++asked;
    await new Promise((resolve) => setTimeout(resolve, 150));
    if (mine !== asked) return;
    const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
    const answer = await fetch(address).catch(() => null);
    const page = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
    const found = page?.getElementById(form.dataset.results);
    if (!found || mine !== asked) return;
    document.getElementById(found.id).replaceChildren(...found.childNodes);
    history.replaceState(null, "", address);
  });
}

// Passkeys: what the page asks for, and what the authenticator says, as fields of the form. Bytes are base64url.
for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential || /^[\d.]+$|^\[/.test(location.hostname)) continue; // an address has no passkeys
  const options = JSON.parse(form.dataset.passkey), problem = form.querySelector(".error");
  const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  const text = (data) => btoa(String.fromCharCode(...new Uint8Array(data))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const asked = { ...options, challenge: bytes(options.challenge), userVerification: "required", timeout: 120000 };
  if (options.user) {
    asked.user.id = bytes(options.user.id);
    asked.excludeCredentials.forEach((each) => { each.id = bytes(each.id); });
    asked.authenticatorSelection = { residentKey: "required", requireResidentKey: true, userVerification: "required" };
  }
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const made = await (options.user ? navigator.credentials.create({ publicKey: asked }) : navigator.credentials.get({ publicKey: asked }));
      const said = made.response;
      const found = { client_data: said.clientDataJSON, authenticator_data: options.user ? said.getAuthenticatorData() : said.authenticatorData };
      if (options.user) found.public_key = said.getPublicKey();
      else Object.assign(found, { credential_id: made.rawId, signature: said.signature });
      for (const [name, data] of Object.entries(found)) form.elements[name].value = text(data);
      form.submit();
    } catch (error) {
      problem.textContent = error.name === "NotAllowedError" ? translated("No passkey was used.") : error.name === "InvalidStateError" ? translated("This device has a passkey of yours already.") : String(error.message);
      problem.hidden = false;
    }
  });
}

// The secret of a one-time link, which no server was sent; it leaves the address, so that it is in no history.
for (const input of document.querySelectorAll("input[data-fragment]")) {
  if (location.hash.length < 2) continue;
  input.value = location.hash.slice(1);
  input.closest("label").hidden = true;
  history.replaceState(null, "", location.pathname);
}

for (const form of document.querySelectorAll("form[data-confirm]")) {
  form.addEventListener("submit", (event) => { 
    if (!confirm(form.dataset.confirm)) event.preventDefault();
    else form.append(element("input", { type: "hidden", name: "sure", value: "1" })); // else a page asks
  });
}

// Files are checked, sent one after another with their progress, and what the page of the answer says is shown here.
for (const form of document.querySelectorAll("form.upload")) {
  const input = form.querySelector("input[name=file]"), list = form.parentElement.querySelector(".uploads"), area = form.querySelector(".drop");
  const names = Object.entries(JSON.parse(form.dataset.names)), limit = Number(form.dataset.limit);
  const waiting = [];
  let sending = false;
  input.multiple = form.querySelectorAll("input[type=file]").length === 1;
  area.querySelector(".dropped").hidden = false;
  const wrong = (file) => {
    const found = names.find(([ending]) => file.name.toLowerCase().endsWith(ending));
    if (!found) return translated("its name must end with %(endings)s", { endings: names.map(([ending]) => ending).join(translated(" or ")) });
    if (!new RegExp(`^(${found[1]})$`).test(file.name.slice(0, -found[0].length))) return translated("its name is not one that packages of this format have");
    return !file.size ? translated("it is empty") : file.size > limit ? translated("it is larger than this server takes") : "";
  };
  const send = ({ file, row }) => new Promise((done) => {
    const bar = element("progress", { max: 1, value: 0, "aria-label": file.name }), request = new XMLHttpRequest(), data = new FormData(form);
    data.delete("file");
    for (const [name, value] of [...data]) if (value instanceof File && !value.name) data.delete(name);
    data.append("file", file);
    row.append(bar);
    request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) bar.value = event.loaded / event.total; });
    request.addEventListener("loadend", () => {
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      const said = page.querySelector(".uploads [role]") ?? page.querySelector("main p");
      row.className = request.status && request.status < 300 ? "done" : "error";
      row.replaceChildren(element("b", {}, file.name), " ", ...(said ? said.childNodes : [translated("The connection ended before the server has answered.")]));
      done();
    });
    request.open("POST", form.action);
    request.send(data);
  });
  const add = async (files) => {
    for (const file of files) {
      const row = element("li", {}, element("b", {}, file.name), " "), no = wrong(file);
      list.append(row);
      if (no) { row.className = "error"; row.append(translated("is not sent: %(why)s.", { why: no })); } else waiting.push({ file, row });
    }
    if (sending) return;
    sending = true;
    while (waiting.length) await send(waiting.shift());
    sending = false;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    add([...input.files]);
    input.value = "";
  });
  for (const type of ["dragover", "dragleave", "drop"]) area.addEventListener(type, (event) => {
    event.preventDefault();
    area.classList.toggle("over", type === "dragover");
    if (type !== "drop") return;
    if (input.multiple) add([...event.dataTransfer.files]);
    else input.files = event.dataTransfer.files;
  });
}

// An operation of the API is asked with the session, and its response is shown.
for (const form of document.querySelectorAll("form.try")) {
  const asks = form.querySelector(".asks"), shown = form.querySelector(".replied");
  if (!asks) continue;
  asks.hidden = false;
  for (const field of form.querySelectorAll("[disabled]")) field.disabled = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { method, path, csrf } = form.dataset, query = new URLSearchParams(), headers = { Accept: "application/json" };
    if (method !== "GET" && !confirm(translated("%(operation)s changes this server. Send it?", { operation: `${method} ${path}` }))) return;
    let address = path;
    for (const field of form.querySelectorAll("table input")) {
      const [place, ...name] = field.name.split(" ");
      if (place === "path") address = address.replace(`{${name[0]}}`, encodeURIComponent(field.value));
      else if (field.value && place === "query") query.set(name[0], field.value);
      else if (field.value) headers[name[0]] = field.value;
    }
    const body = form.querySelector("[name=body]")?.value;
    if (method !== "GET") headers["X-CSRF"] = csrf;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const begun = performance.now();
    const reply = await fetch(`/api${address}${query.size ? `?${query}` : ""}`, { method, headers, body }).catch((error) => error);
    if (!(reply instanceof Response)) { shown.replaceChildren(element("p", { class: "error" }, translated("The server cannot be reached."))); return; }
    const text = await reply.text(), took = Math.round(performance.now() - begun);
    let laid = text;
    try { laid = JSON.stringify(JSON.parse(text), null, 2); } catch { /* it is no JSON */ }
    shown.replaceChildren(element("p", {}, element("span", { class: `tag ${reply.ok ? "good" : "bad"}` }, `${reply.status} ${reply.statusText}`), ` ${took} ms`), element("pre", { tabindex: 0 }, element("code", {}, laid.slice(0, 20000))));
  });
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

// What still changes is loaded again while somebody looks at it: when the server says that it has changed, or else
// every now and then.
async function load() {
  const shown = document.querySelector("[data-live]");
  if (!shown || document.hidden || shown.contains(document.activeElement)) return;
  const answer = await fetch(location.href).catch(() => null);
  const page = answer?.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  const next = page?.getElementById(shown.id);
  if (!next) return;
  shown.replaceWith(next);
  document.title = page.title;
  document.querySelector("link[rel=icon]").href = page.querySelector("link[rel=icon]").href;
}
async function refresh() {
  await load();
  const shown = document.querySelector("[data-live]");
  if (shown) setTimeout(refresh, Number(shown.dataset.live));
}
function follow(address) {
  const events = new EventSource(address);
  const end = () => { events.close(); removeEventListener("pagehide", end); };
  addEventListener("pagehide", end);
  events.addEventListener("job", async (event) => {
    if (JSON.parse(event.data).state !== "running") end();
    await load();
  });
  events.addEventListener("error", () => { if (events.readyState === EventSource.CLOSED) { end(); refresh(); } });
}
const live = document.querySelector("[data-live]");
if (live?.dataset.events && "EventSource" in window) follow(live.dataset.events);
else if (live) setTimeout(refresh, 1000);

// The menu of the person closes like those of programs.
for (const menu of document.querySelectorAll("details.me")) {
  document.addEventListener("click", (event) => { if (!menu.contains(event.target)) menu.open = false; });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

// A window to go somewhere by typing, and one that lists the keys. Both are made when they are first wanted.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function makeWindow(label, ...children) {
  const made = element("dialog", { "aria-label": label, class: "window" }, ...children);
  made.addEventListener("click", (event) => { if (event.target === made) made.close(); });
  document.body.append(made);
  return made;
}

let palette = null;
function openPalette() {
  if (!palette) {
    const input = element("input", { type: "search", "aria-label": translated("Go to"), placeholder: translated("Go to a page or a package"), autocomplete: "off" });
    const list = element("ul", { class: "plain goto" });
    palette = makeWindow(translated("Go to"), input, list);
    const places = [...document.querySelectorAll(".top a, .tabs a, .sections a, a.row")].map((link) => [link.textContent.trim(), link.href]);
    let asked = 0;
    const show = (found) => list.replaceChildren(...found.slice(0, 12).map(([label, href, about]) =>
      element("li", {}, element("a", { href }, label), element("span", { class: "quiet" }, about ? ` ${about}` : ""))));
    input.addEventListener("input", async () => {
      const text = input.value.trim(), mine = ++asked;
      const near = places.filter(([label]) => label.toLowerCase().includes(text.toLowerCase()));
      show(near);
      if (text.length < 2) return;
      const answer = await fetch(`/api/search/packages?limit=10&q=${encodeURIComponent(text)}`).catch(() => null);
      if (!answer?.ok || mine !== asked) return;
      const hits = (await answer.json()).items.map((each) => [each.name, packagePage(each), translated("%(format)s in %(repository)s", each)]);
      if (mine === asked) show([...near, ...hits]);
    });
    palette.addEventListener("keydown", (event) => {
      const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
      if (event.key === "Enter" && document.activeElement === input && links.length) links[0].click();
      else if (event.key === "ArrowDown" && links.length) links[Math.min(at + 1, links.length - 1)].focus();
      else if (event.key === "ArrowUp") (links[at - 1] ?? input).focus();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    show(places);
  }
  palette.showModal();
  palette.querySelector("input").select();
}

function packagePage(found) {
  const [storage, ...rest] = found.repository.split("/");
  return `/ui/repositories/${[storage, rest.join("/"), "packages", found.name].map(encodeURIComponent).join("/")}`;
}

let help = null;
function openHelp() {
  const keys = [["/", translated("search packages")], ["Ctrl K", translated("go to a page or a package")], ["↓ ↑", translated("through the rows of a list")], ["Enter", translated("open the row")], ["Esc", translated("leave a field or a window")], ["?", translated("these keys")]];
  help ??= makeWindow(translated("Keys"), element("h2", {}, translated("Keys")), element("dl", { class: "figures" }, ...keys.flatMap(([key, what]) => [element("dt", {}, element("kbd", {}, key)), element("dd", {}, what)])));
  help.showModal();
}

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "/" && !typing) {
    event.preventDefault();
    document.querySelector("[data-key='/']").focus();
  } else if (event.key === "?" && !typing) {
    event.preventDefault();
    openHelp();
  } else if (event.key === "Escape" && typing) {
    document.activeElement.blur();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !typing) {
    const rows = [...document.querySelectorAll("a.row")].filter((row) => row.offsetParent);
    const at = rows.indexOf(document.activeElement);
    const next = rows[at < 0 ? 0 : at + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) { event.preventDefault(); next.focus(); }
  }
});

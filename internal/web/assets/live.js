// Follows the page's stream: the server sends rendered parts, this module puts them in their places.
const list = document.getElementById("items");
const scroll = document.getElementById("scroll");
const say = document.getElementById("say");
const composer = document.getElementById("composer");
const text = composer?.elements.text;
const status = document.getElementById("status");
const newText = document.querySelector(".new-text");
const words = document.body.dataset;
document.documentElement.classList.add("script");

const nearEnd = () => !scroll || scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
let following = true;
const toEnd = () => {
  if (!scroll || !composer) return;
  if (following) scroll.scrollTop = scroll.scrollHeight;
  if (newText) newText.hidden = following;
};
scroll?.addEventListener("scroll", () => {
  following = nearEnd();
  if (newText && following) newText.hidden = true;
});
newText?.addEventListener("click", (event) => {
  event.preventDefault();
  following = true;
  toEnd();
});

// parse makes the one element that some HTML of the server holds.
const parse = (html) => {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
};

const focusable = "a, button, input, select, textarea, summary, [tabindex]";

// keepState carries what the person opened, marked and typed to a new version of an element. It returns
// what has the focus there.
const keepState = (from, to) => {
  for (const open of from.querySelectorAll("details[id]")) {
    const same = to.querySelector(`[id="${open.id}"]`);
    if (same && open.open) same.open = true;
  }
  const valued = "[type=checkbox], [type=radio], button";
  const nameOf = (field) => [field.form?.getAttribute("action"), field.id, field.name, field.matches(valued) && field.value].join();
  const fresh = new Map([...to.querySelectorAll("input, textarea, button")].map((field) => [nameOf(field), field]));
  for (const field of from.querySelectorAll("input:not([type=hidden]), textarea")) {
    const same = fresh.get(nameOf(field));
    if (same && field.value !== field.defaultValue) same.value = field.value;
    if (same && field.checked !== field.defaultChecked) same.checked = field.checked;
  }
  const active = document.activeElement;
  const place = [...from.querySelectorAll(focusable)].indexOf(active);
  if (place >= 0 && active.matches(".card input, .card button")) return fresh.get(nameOf(active)); // never another button
  return active.id && to.querySelector(`[id="${active.id}"]`) || to.querySelectorAll(focusable)[place];
};

const replace = (from, to) => {
  const focused = keepState(from, to);
  from.replaceWith(to);
  focused?.focus({ preventScroll: true });
};

let waiting = document.querySelector("#nav .count")?.textContent ?? "";
const notify = document.getElementById("notify");
if (notify && window.Notification?.permission === "default") {
  notify.hidden = false;
  notify.addEventListener("click", async () => { notify.hidden = (await Notification.requestPermission()) !== "default"; });
}

const sync = (update) => {
  let place = null;
  for (const id of update.items) {
    let element = document.getElementById(id);
    if (update.html[id] !== undefined) {
      const fresh = parse(update.html[id]);
      if (element) replace(element, fresh);
      else list.append(fresh);
      element = fresh;
    }
    if (!element) continue;
    const next = place ? place.nextElementSibling : list.firstElementChild;
    if (element !== next) list.insertBefore(element, next);
    if (element.dataset.client) document.getElementById(`sent-${element.dataset.client}`)?.remove();
    place = element;
  }
  const known = new Set(update.items);
  for (const element of [...(list?.children ?? [])]) {
    if (!known.has(element.id) && !element.id.startsWith("sent-")) element.remove();
  }
  for (const [id, html] of Object.entries(update.html)) {
    const region = known.has(id) ? null : document.getElementById(id);
    if (!region || region.contains(document.activeElement?.closest("select, a"))) continue;
    const fresh = region.cloneNode(false);
    fresh.innerHTML = html;
    replace(region, fresh);
  }
  const before = waiting;
  waiting = document.querySelector("#nav .count")?.textContent ?? "";
  if (document.hidden && Number(waiting) > Number(before) && window.Notification?.permission === "granted") {
    new Notification("Regie", { body: update.say || words.waits, tag: "regie" });
  }
  focusRequest(update);
  const heading = document.querySelector(".bar h1");
  if (composer && heading.textContent !== update.title) heading.textContent = heading.title = update.title;
  document.title = `${waiting ? `(${waiting}) ` : ""}${update.title} · Regie`;
  if (say.textContent !== update.say) say.textContent = update.say;
  toEnd();
};

// focusRequest goes to a request that is new, where the person writes nothing and is at nothing else.
const focusRequest = (update) => {
  const active = document.activeElement;
  if (active !== document.body && (active !== text || text.value.trim())) return;
  const id = update.items.find((item) => update.html[item] && document.getElementById(item)?.querySelector(".card.you"));
  if (id) document.getElementById(id).querySelector(".card.you").focus({ preventScroll: true });
};

const live = (reply) => {
  let element = document.getElementById(reply.id);
  if (!element) {
    element = parse('<li class="turn agent"><article class="answer" aria-busy="true"></article></li>');
    element.id = reply.id;
    list.insertBefore(element, list.querySelector(".turn.pending, .turn.sending")); // these wait behind it
  }
  const answer = element.firstElementChild;
  for (const block of reply.blocks) {
    while (answer.children.length <= block.i) {
      const place = document.createElement("div");
      place.className = "block";
      answer.append(place);
    }
    answer.children[block.i].innerHTML = block.html;
  }
  toEnd();
};

// showGone says that the chat was deleted, and offers the draft that is left.
const showGone = () => {
  showProblem(composer, words.gone);
  for (const button of composer.querySelectorAll(".tools button, .tools select")) button.disabled = true;
  if (!text.value) return;
  const copy = parse('<button type="button" class="link"></button>');
  copy.textContent = words.copydraft;
  copy.addEventListener("click", () => copyText(copy, text.value));
  composer.querySelector(".problem").append(copy);
};

// copyText copies a text, and says so on the button for a moment.
const copyText = async (button, copied) => {
  const label = button.textContent;
  await navigator.clipboard.writeText(copied);
  button.textContent = words.copied;
  setTimeout(() => { button.textContent = label; }, 2000);
};

const showProblem = (form, detail) => {
  form.querySelector(".problem")?.remove();
  if (!detail) return;
  const line = parse('<p class="problem" role="alert"></p>');
  line.textContent = detail;
  (form.querySelector(".card-foot, .tools") ?? form.lastElementChild).before(line);
};

// The stream: what the page shows comes through the worker that all tabs share, or by the page itself.
let seq = "";
let stopped = !words.stream; // nothing more comes: what the page shows was removed
let source;
let worker;
let cut;
let waits = []; // pieces of the reply that came while the tab was hidden

const showConnection = (note) => {
  clearTimeout(cut);
  const show = (told) => {
    document.body.classList.toggle("cut", Boolean(told));
    if (told) say.dataset.cut = say.textContent = told;
    else if (say.dataset.cut) { say.textContent = ""; delete say.dataset.cut; }
  };
  if (note === words.reconnecting) cut = setTimeout(show, 2000, note);
  else show(note);
};

const showWaits = () => {
  for (const reply of waits) live(reply);
  waits = [];
};
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  showWaits();
  markRead();
});

let unseen = ""; // up to where the chat has news that the person has not seen
const markRead = () => {
  if (!unseen || document.hidden || !composer) return;
  const body = new URLSearchParams({ csrf: composer.elements.csrf.value, seq: unseen });
  unseen = "";
  fetch(`${location.pathname}/read`, { method: "POST", body, headers: { Accept: "application/json" } }).catch(() => {});
};

const receive = {
  open: () => showConnection(""),
  cut: () => showConnection(words.reconnecting),
  ended: () => showConnection(words.ended),
  sync: (data, id) => {
    if (id) seq = id;
    showWaits();
    const update = JSON.parse(data);
    sync(update);
    unseen = update.unread ? seq : "";
    markRead();
  },
  live: (data) => {
    waits.push(JSON.parse(data));
    if (!document.hidden) showWaits();
  },
  gone: () => {
    stopped = true;
    disconnect();
    if (composer) showGone();
  },
};

const disconnect = () => {
  source?.close();
  worker?.port.postMessage({});
};

const follow = () => {
  const address = new URL(words.stream, location.href);
  if (seq) { address.searchParams.set("after", seq); address.searchParams.set("again", "yes"); }
  source = new EventSource(address);
  for (const name of ["open", "sync", "live", "gone"]) {
    source.addEventListener(name, (event) => receive[name](event.data, event.lastEventId));
  }
  source.addEventListener("error", () => {
    receive.cut();
    if (source.readyState === EventSource.CLOSED && !stopped) setTimeout(follow, 1000);
  });
};

const connect = () => {
  if (stopped) return;
  if (!window.SharedWorker) return follow();
  try {
    worker ??= new SharedWorker(words.worker);
  } catch {
    return follow();
  }
  worker.onerror = () => { if (!source) follow(); };
  worker.port.onmessage = ({ data }) => receive[data.name](data.data, data.seq);
  worker.port.postMessage({ stream: words.stream, seq, again: Boolean(seq) });
};
if (document.querySelector("[data-rests]")) { // nothing is read while the tab is hidden
  document.addEventListener("visibilitychange", () => {
    disconnect();
    if (!document.hidden) connect();
  });
}
addEventListener("pagehide", disconnect);
addEventListener("pageshow", (event) => { if (event.persisted) connect(); });

// send posts a form behind another one; its answer comes over the stream.
const send = async (form, submitter, before) => {
  const fields = new FormData(form, submitter);
  const data = form.enctype === "multipart/form-data" ? fields : new URLSearchParams(fields);
  const action = submitter?.getAttribute("formaction") ?? form.getAttribute("action");
  await before;
  let response;
  try {
    response = await fetch(action, { method: "POST", body: data, headers: { Accept: "application/json" } });
  } catch {
    return words.reconnecting;
  }
  if (response.ok) return "";
  if (response.status === 401) return words.ended;
  return (await response.json().catch(() => ({}))).detail ?? response.statusText;
};

// showChosen names the images that are attached.
const showChosen = (form) => {
  form.querySelector(".chosen").textContent = [...form.elements.image.files].map((file) => file.name).join(", ");
};

// Images are attached by pasting and by dropping them too.
const attach = (event, transfer) => {
  const files = [...(transfer?.files ?? [])].filter((file) => file.type.startsWith("image/"));
  if (!files.length) return;
  event.preventDefault();
  const all = new DataTransfer();
  for (const file of [...event.currentTarget.elements.image.files, ...files]) all.items.add(file);
  event.currentTarget.elements.image.files = all.files;
  showChosen(event.currentTarget);
};
for (const form of document.querySelectorAll("form.composer")) {
  form.addEventListener("paste", (event) => attach(event, event.clipboardData));
  form.addEventListener("dragover", (event) => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  });
  form.addEventListener("drop", (event) => attach(event, event.dataTransfer));
}

// The draft is kept in this browser until the server has the message.
const anyText = document.querySelector(".composer textarea");
const draftKey = `draft ${composer ? location.pathname : "/chats/new"}`;
if (anyText) {
  anyText.value ||= localStorage.getItem(draftKey) ?? "";
  anyText.addEventListener("input", () => {
    if (anyText.value) localStorage.setItem(draftKey, anyText.value);
    else localStorage.removeItem(draftKey);
  });
  anyText.addEventListener("paste", (event) => {
    const size = event.clipboardData?.getData("text").length ?? 0;
    showProblem(anyText.form, "");
    if (size + anyText.value.length < 4_000_000) return;
    event.preventDefault();
    showProblem(anyText.form, anyText.form.dataset.large);
  });
  anyText.form.addEventListener("submit", (event) => {
    if (composer) return;
    if (obeys()) event.preventDefault();
    else sessionStorage.setItem("begun", `/chats/${anyText.form.elements.session_id.value}`);
  });
}
if (composer && sessionStorage.getItem("begun") === location.pathname) { // the server has the message
  sessionStorage.removeItem("begun");
  localStorage.removeItem("draft /chats/new");
}

// Suggestions: files behind @, commands behind /.
const offers = document.getElementById("offers");
let asked = 0;
let offered = ""; // the word that the suggestions complete
let picked = -1;

// wordAt returns what stands before the cursor and can be completed.
const wordAt = () => {
  const before = anyText.value.slice(0, anyText.selectionStart);
  if (/^\/(?!\/)[^\n]*$/.test(before)) return before;
  return /(?:^|[\s([{<"'`«“,;:])(@"[^"\n]*|@[^\s"]*)$/.exec(before)?.[1] ?? "";
};

const pick = (at) => {
  picked = at;
  [...offers.children].forEach((option, i) => {
    option.setAttribute("aria-selected", String(i === at));
    if (i === at) option.scrollIntoView({ block: "nearest" });
  });
  if (at < 0) anyText.removeAttribute("aria-activedescendant");
  else anyText.setAttribute("aria-activedescendant", `offer-${at}`);
};

const closeOffers = () => {
  asked++;
  offers.hidden = true;
  pick(-1);
};

const acceptOffer = (at) => {
  const insert = offers.children[at].dataset.insert;
  const to = anyText.selectionStart;
  const space = insert.endsWith("/") ? "" : " ";
  anyText.setRangeText(insert + space, to - wordAt().length, to, "end");
  anyText.dispatchEvent(new Event("input"));
};

// localOffers are the page's own commands that a word begins, and their arguments that the page knows.
const localOffers = (word) => {
  const [command, argument] = word.split(" ", 2);
  const select = argument !== undefined && { "/mode": "select[name=mode]", "/agent": "select[name=agent]" }[command];
  const known = select
    ? [...document.querySelectorAll(`${select} option`)].map(({ value, title }) => ({ insert: `${command} ${value}`, about: title }))
    : [...document.getElementById("commands").content.children].map(({ dataset, textContent }) => ({ ...dataset, about: textContent }));
  return known.filter(({ insert }) => insert.startsWith(word));
};

const fetchOffers = async (word) => {
  const workspace = anyText.form.elements.workspace_id?.value ?? anyText.dataset.workspace;
  const response = await fetch(`/offers?${new URLSearchParams({ word, workspace })}`,
    { headers: { Accept: "application/json" } }).catch(() => null);
  return response?.ok ? response.json() : [];
};

const fillOffers = (word, list) => {
  offered = word;
  offers.replaceChildren(...list.map(({ insert, about }, i) => {
    const option = parse('<li role="option"><strong></strong><span></span></li>');
    option.id = `offer-${i}`;
    option.dataset.insert = insert;
    option.firstElementChild.textContent = insert;
    option.lastElementChild.textContent = about ?? "";
    return option;
  }));
  offers.hidden = !list.length;
  pick(!list.length || list.some(({ insert }) => insert === word.trimEnd()) ? -1 : 0);
};

const showOffers = async () => {
  const word = wordAt();
  if (!word) return closeOffers();
  const mine = ++asked;
  const known = localOffers(word);
  if (known.length || !word.startsWith("@")) fillOffers(word, known);
  if (/^\/.* /.test(word) && !word.startsWith("/model ")) return;
  const found = await fetchOffers(word);
  if (mine === asked) fillOffers(word, [...known, ...found]);
};

// offerKey obeys a key while suggestions show, and reports whether it was one for them.
const offerKey = (key) => {
  const count = offers.children.length;
  if (offered !== wordAt() && key !== "Escape") return false;
  if (key === "ArrowDown") pick((picked + 1) % count);
  else if (key === "ArrowUp") pick((Math.max(picked, 0) + count - 1) % count);
  else if (key === "Escape") closeOffers();
  else if (key === "Tab" || (key === "Enter" && picked >= 0)) acceptOffer(Math.max(picked, 0));
  else return false;
  return true;
};

if (anyText) {
  anyText.addEventListener("input", showOffers);
  anyText.addEventListener("blur", closeOffers);
  offers.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const option = event.target.closest("[role=option]");
    if (option) acceptOffer([...offers.children].indexOf(option));
  });
  const models = anyText.form.elements.model;
  models.addEventListener("focus", async () => {
    for (const { insert } of await fetchOffers("/model ")) {
      const name = insert.slice("/model ".length);
      if (![...models.options].some(({ value }) => value === name)) models.add(new Option(name, name));
    }
  }, { once: true });
}

// commands are the slash commands that the page itself obeys.
const commands = {
  "/new": () => location.assign("/chats/new"),
  "/help": () => document.getElementById("keys").showModal(),
  "/agent": (name) => location.assign(`/chats/new?${new URLSearchParams({ agent: name })}`),
  "/model": (name) => {
    const { model } = anyText.form.elements;
    if (name && ![...model.options].some(({ value }) => value === name)) model.add(new Option(name, name));
    model.value = name;
  },
  "/mode": (name) => {
    const mode = document.querySelector("select[name=mode]");
    mode.value = name;
    mode.dispatchEvent(new Event("change", { bubbles: true }));
  },
  "/undo": () => location.assign(`${location.pathname}/undo`),
  "/fork": () => document.querySelector("#chat-menu form[action$=fork]").requestSubmit(),
  "/stop": () => document.querySelector("#send .stop")?.click(),
};

// obeys carries out the command that was typed, and reports whether it was one of the page.
const obeys = () => {
  const [word] = anyText.value.trim().split(" ", 1);
  const offered = [...document.getElementById("commands").content.children].some(({ dataset }) => dataset.insert === word);
  if (!offered || !commands[word]) return false;
  const rest = anyText.value.trim().slice(word.length).trim();
  anyText.value = "";
  localStorage.removeItem(draftKey);
  commands[word](rest);
  return true;
};

let sending; // the newest message
let failed = {}; // what was typed, and the id that it has when it is sent again: the server may have it

// sendMessage shows a message at once, and takes it back where the server does not.
const sendMessage = async (submitter) => {
  const typed = text.value;
  if (!typed.trim() || obeys()) return;
  if (typed.startsWith("/steer ")) {
    text.value = typed.slice("/steer ".length);
    submitter = composer.querySelector("[value=steer]") ?? submitter;
  }
  const field = composer.elements.client_message_id;
  const shown = parse('<li class="turn person sending"><article><div class="bubble"></div></article></li>');
  const id = failed.typed === typed.trim() ? failed.id : field.value;
  field.value = id;
  shown.id = `sent-${id}`;
  shown.querySelector(".bubble").textContent = text.value.trim();
  if (!document.querySelector(`[data-client="${id}"]`)) list.append(shown);
  following = true;
  toEnd();
  const images = composer.elements.image;
  for (const file of images.files) {
    const name = parse('<span class="file"></span>');
    name.textContent = file.name;
    shown.firstElementChild.append(name);
  }
  sending = send(composer, submitter, sending);
  field.value = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  const chosen = images.files;
  images.value = "";
  showChosen(composer);
  text.value = "";
  showProblem(composer, "");
  const detail = await sending;
  if (detail) {
    shown.remove();
    failed = { typed: typed.trim(), id };
    localStorage.setItem(draftKey, typed);
    text.value = typed + (text.value ? `\n${text.value}` : "");
    images.files = chosen;
    showChosen(composer);
    showProblem(composer, detail);
    return;
  }
  if (!text.value) localStorage.removeItem(draftKey);
};

// leaving says that the person has gone to another page, which an answer that comes then leaves be.
let leaving = false;
document.addEventListener("click", ({ target, ctrlKey, metaKey, shiftKey }) => {
  leaving ||= !(ctrlKey || metaKey || shiftKey) && Boolean(target.closest("a[href]:not([href^='#'], [target], [download])"));
});
const leave = (path) => { leaving = true; location.assign(path); };
addEventListener("pageshow", () => { leaving = false; });

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.closest(".side") || form.hasAttribute("data-plain") || form.method !== "post" || (form.matches(".composer") && form !== composer)) return;
  event.preventDefault();
  const submitter = event.submitter;
  if (form === composer && !submitter?.hasAttribute("formaction")) return sendMessage(submitter);
  if (form.getAttribute("aria-busy")) return;
  form.setAttribute("aria-busy", "true");
  const menu = form.matches(".does") && submitter?.closest("details");
  if (menu) { menu.open = false; menu.firstElementChild.focus(); }
  const detail = await send(form, submitter);
  form.removeAttribute("aria-busy");
  showProblem(form, detail);
  if (detail) return;
  if (form.closest("#detail")) return leaving || location.assign(form.elements.next.value);
  if (!form.closest(".card")) return;
  const next = [...document.querySelectorAll(".card.you")].find((card) => !card.contains(form));
  (next ?? text)?.focus({ preventScroll: true });
});

document.addEventListener("change", (event) => {
  if (event.target.name === "image") showChosen(event.target.form);
  if (event.target.form?.dataset.submit === "change") {
    event.target.blur();
    event.target.form.requestSubmit();
  }
  if (event.target.name === "workspace_id") location.assign(`/chats/new?workspace_id=${event.target.value}`);
});

// The next times of a schedule follow what is typed.
const preview = document.getElementById("preview");
let previewed;
document.getElementById("editor")?.addEventListener("input", ({ target }) => {
  if (!["when", "zone", "place"].includes(target.name)) return;
  clearTimeout(previewed);
  const mine = previewed = setTimeout(async () => {
    const response = await fetch("/automations/preview", { method: "POST", body: new URLSearchParams(new FormData(target.form)) }).catch(() => null);
    if (!response?.ok || mine !== previewed) return;
    preview.innerHTML = await response.text();
    say.textContent = preview.firstElementChild.textContent;
  }, 300);
});

// Copy takes what the button names, or the text of the answers since the person's last message.
document.addEventListener("click", (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  if (button.dataset.copy) return copyText(button, button.dataset.copy);
  const parts = [];
  for (let turn = button.closest(".turn"); turn && !turn.matches(".person"); turn = turn.previousElementSibling) {
    if (turn.matches(".agent")) parts.unshift(turn.innerText.trim());
  }
  copyText(button.querySelector("span"), parts.join("\n\n"));
});

const goTo = (selector) => document.querySelector(selector)?.click();

// moveTurn focuses the turn before or behind the one that has the focus.
const moveTurn = (by) => {
  const turns = [...list.children];
  const at = turns.indexOf(document.activeElement.closest("#items > *"));
  const turn = turns[at < 0 ? turns.length - 1 : Math.min(Math.max(at + by, 0), turns.length - 1)];
  turn.tabIndex = -1;
  turn.focus();
};

// closeOpen closes what is open, and reports whether there was anything.
const closeOpen = () => {
  const menu = document.activeElement.closest("details.menu[open]") ?? document.querySelector("details.menu[open]");
  if (menu) {
    menu.open = false;
    menu.firstElementChild.focus();
  } else if (document.querySelector("#sheet:target, #side:target")) {
    location.hash = "";
  } else {
    return false;
  }
  return true;
};

// cardKey obeys the single letters of a card: none decides in one stroke.
const cardKey = (card, key) => {
  if (/^[1-9]$/.test(key)) card.querySelectorAll(".option input")[key - 1]?.click();
  if (key === "a") card.querySelector(".card-foot .primary")?.focus();
  if (key === "d") {
    const deny = card.querySelector("details.menu:has([value=deny])");
    if (deny) { deny.open = true; deny.querySelector("input").focus(); }
  }
};

// The page's keys: with Alt, with Ctrl.
const altKeys = {
  n: () => leave("/chats/new"),
  i: () => leave("/inbox"),
  a: () => document.querySelector(".card.you")?.focus(),
  arrowup: () => moveTurn(-1),
  arrowdown: () => moveTurn(1),
};
const controlKeys = {
  k: () => goTo(".search-link"),
  "/": () => document.getElementById("keys").showModal(),
  ".": () => { location.hash = location.hash === "#sheet" ? "" : "sheet"; },
  enter: () => { // which button of several, only a person says
    const active = document.activeElement;
    const card = active.closest(".card");
    const place = active.closest(".card .menu-body") ?? card?.querySelector(".card-foot");
    const buttons = place ? [...place.children].filter((child) => child.matches("button")) : [active.form?.querySelector(".primary")];
    if (buttons.length === 1 && buttons[0]) buttons[0].form.requestSubmit(buttons[0]);
    else if (!card) active.form?.requestSubmit();
  },
};

document.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  const writes = event.target.matches?.("input:not([type=radio], [type=checkbox]), textarea, select");
  const key = /^Key/.test(event.code) && !/^[a-z]$/i.test(event.key) ? event.code.slice(3).toLowerCase() : event.key.toLowerCase();
  const chosen = event.altKey && !event.ctrlKey ? altKeys[key] : (event.ctrlKey || event.metaKey) && !event.altKey && controlKeys[key];
  if (event.target === anyText && !offers.hidden && offerKey(event.key)) {
    event.preventDefault();
  } else if (chosen) {
    event.preventDefault();
    chosen();
  } else if (event.key === "Enter" && event.target === anyText && !event.shiftKey) {
    event.preventDefault();
    event.target.form.requestSubmit(event.target.form.querySelector(".primary"));
  } else if (event.key === "Enter" && event.target.matches?.(".card .menu-body input")) {
    event.preventDefault();
    controlKeys.enter();
  } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    if (!closeOpen()) goTo("#send .stop");
  } else if (!writes && event.key === "?") {
    controlKeys["/"]();
  } else if (!writes && !event.ctrlKey && !event.metaKey && event.target.closest?.(".card")) {
    if (key === "d") event.preventDefault(); // it is no part of the reason
    cardKey(event.target.closest(".card"), key);
  } else if (!writes && ["j", "k"].includes(key) && event.target.closest?.("[data-keys]")) {
    event.target.closest("li")?.[key === "j" ? "nextElementSibling" : "previousElementSibling"]?.querySelector("a").focus();
  }
});

if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
else toEnd();
connect();

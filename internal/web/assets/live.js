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

// keepState carries what the person opened, marked and typed to a new version of an element.
const keepState = (from, to) => {
  for (const open of from.querySelectorAll("details[id]")) {
    const same = to.querySelector(`[id="${open.id}"]`);
    if (same && open.open) same.open = true;
  }
  const focused = from.contains(document.activeElement) ? document.activeElement.id : "";
  for (const field of from.querySelectorAll("input[id], textarea[id]")) {
    const same = to.querySelector(`[id="${field.id}"]`);
    if (same && field.value !== field.defaultValue) same.value = field.value;
  }
  return focused;
};

const replace = (from, to) => {
  const focused = keepState(from, to);
  from.replaceWith(to);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
};

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
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    const focused = keepState(region, fresh.content);
    region.replaceChildren(fresh.content);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }
  const waiting = document.querySelector("#nav .count")?.textContent;
  document.title = `${waiting ? `(${waiting}) ` : ""}${update.title} · Regie`;
  if (say.textContent !== update.say) say.textContent = update.say;
  toEnd();
};

const live = (reply) => {
  let element = document.getElementById(reply.id);
  if (!element) {
    element = parse('<li class="turn agent"><article class="answer" aria-busy="true"></article></li>');
    element.id = reply.id;
    list.append(element);
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

const showProblem = (form, detail) => {
  form.querySelector(".problem")?.remove();
  if (!detail) return;
  const line = parse('<p class="problem" role="alert"></p>');
  line.textContent = detail;
  (form.querySelector(".card-foot, .tools") ?? form.lastElementChild).before(line);
};

let seq = "";
let source;
const connect = () => {
  if (!words.stream) return;
  const address = new URL(words.stream, location.href);
  if (seq) address.searchParams.set("after", seq);
  source = new EventSource(address);
  let cut;
  source.addEventListener("open", () => {
    clearTimeout(cut);
    if (say.dataset.cut) { say.textContent = ""; delete say.dataset.cut; }
    document.body.classList.remove("cut");
  });
  source.addEventListener("sync", (event) => {
    if (event.lastEventId) seq = event.lastEventId;
    sync(JSON.parse(event.data));
  });
  source.addEventListener("live", (event) => live(JSON.parse(event.data)));
  source.addEventListener("gone", () => {
    source.close();
    if (composer) showProblem(composer, words.gone);
  });
  source.addEventListener("error", () => {
    clearTimeout(cut);
    cut = setTimeout(() => {
      document.body.classList.add("cut");
      say.textContent = words.reconnecting;
      say.dataset.cut = "yes";
    }, 2000);
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 1000);
  });
};
if (document.querySelector("[data-rests]")) { // nothing is read while the tab is hidden
  document.addEventListener("visibilitychange", () => {
    source?.close();
    if (!document.hidden) connect();
  });
}
addEventListener("pagehide", () => source?.close());
addEventListener("pageshow", (event) => { if (event.persisted) connect(); });

// send posts a form; its answer comes over the stream.
const send = async (form, submitter) => {
  const fields = new FormData(form, submitter);
  const data = form.enctype === "multipart/form-data" ? fields : new URLSearchParams(fields);
  const action = submitter?.getAttribute("formaction") ?? form.getAttribute("action");
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

const draftKey = composer ? `draft ${location.pathname}` : "";
if (composer) {
  text.value ||= localStorage.getItem(draftKey) ?? "";
  text.addEventListener("input", () => localStorage.setItem(draftKey, text.value));
}

// sendMessage shows a message at once, and takes it back where the server does not.
const sendMessage = async (submitter) => {
  const typed = text.value;
  if (!typed.trim()) return;
  const field = composer.elements.client_message_id;
  const shown = parse('<li class="turn person sending"><article><div class="bubble"></div></article></li>');
  shown.id = `sent-${field.value}`;
  shown.querySelector(".bubble").textContent = typed.trim();
  if (!document.querySelector(`[data-client="${field.value}"]`)) list.append(shown);
  following = true;
  toEnd();
  const images = composer.elements.image;
  for (const file of images.files) {
    const name = parse('<span class="file"></span>');
    name.textContent = file.name;
    shown.firstElementChild.append(name);
  }
  const sending = send(composer, submitter);
  const chosen = images.files;
  images.value = "";
  showChosen(composer);
  text.value = "";
  showProblem(composer, "");
  const detail = await sending;
  if (detail) {
    shown.remove();
    text.value = typed + (text.value ? `\n${text.value}` : "");
    images.files = chosen;
    showChosen(composer);
    showProblem(composer, detail);
    return;
  }
  field.value = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  localStorage.removeItem(draftKey);
};

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.closest(".side") || form.method !== "post" || (form.matches(".composer") && form !== composer)) return;
  event.preventDefault();
  const submitter = event.submitter;
  if (form === composer && !submitter?.hasAttribute("formaction")) return sendMessage(submitter);
  if (form.getAttribute("aria-busy")) return;
  form.setAttribute("aria-busy", "true");
  const detail = await send(form, submitter);
  form.removeAttribute("aria-busy");
  showProblem(form, detail);
  if (!detail && form.closest(".card")) text?.focus({ preventScroll: true });
});

document.addEventListener("change", (event) => {
  if (event.target.name === "image") showChosen(event.target.form);
  if (event.target.form?.dataset.submit === "change") {
    event.target.blur();
    event.target.form.requestSubmit();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.matches?.(".composer textarea") && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    event.target.form.requestSubmit(event.target.form.querySelector(".primary"));
  }
  if (event.key === "Escape") {
    const menu = event.target.closest?.("details.menu[open]");
    if (menu) { menu.open = false; menu.firstElementChild.focus(); }
  }
  if (event.altKey && event.key.toLowerCase() === "a") {
    document.querySelector(".card.you")?.focus();
    event.preventDefault();
  }
});

if (location.hash) document.querySelector(CSS.escape ? `#${CSS.escape(location.hash.slice(1))}` : location.hash)?.scrollIntoView();
else toEnd();
connect();

// The chat of a visitor in a frame: it keeps the secret of its session and follows the stream with it.
const list = document.getElementById("items");
const scroll = document.getElementById("scroll");
const say = document.getElementById("say");
const form = document.querySelector(".composer");
const { text, visitor, client_message_id: client } = form.elements;
document.documentElement.classList.add("script");

// Storage may be refused to a frame: then the chat lasts as long as the page.
const key = `visitor ${location.pathname}`;
try { visitor.value ||= localStorage.getItem(key) ?? ""; } catch { /* refused */ }
const keep = (secret) => {
  visitor.value = secret;
  try { localStorage.setItem(key, secret); } catch { /* refused */ }
};

const parse = (html) => {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
};

let following = true;
scroll.addEventListener("scroll", () => { following = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80; });
const toEnd = () => { if (following) scroll.scrollTop = scroll.scrollHeight; };

const handlers = {
  sync(update) {
    const known = new Set(update.items);
    for (const [id, html] of Object.entries(update.html)) {
      const element = document.getElementById(id);
      if (!known.has(id)) element.innerHTML = html;
      else if (element) element.replaceWith(parse(html));
      else list.append(parse(html));
    }
    for (const element of [...list.children]) {
      const sent = element.id.startsWith("sent-");
      if (sent ? list.querySelector(`[data-client="${element.id.slice(5)}"]`) : !known.has(element.id)) element.remove();
    }
    let next = list.firstElementChild;
    for (const element of update.items.map((id) => document.getElementById(id)).filter(Boolean)) {
      if (element === next) next = element.nextElementSibling;
      else list.insertBefore(element, next);
    }
    say.textContent = update.say;
  },
  live(reply) {
    let element = document.getElementById(reply.id);
    if (!element) {
      element = parse('<li class="turn agent"><article class="answer" aria-busy="true"></article></li>');
      element.id = reply.id;
      list.append(element);
    }
    const answer = element.firstElementChild;
    for (const block of reply.blocks) {
      while (answer.children.length <= block.i) answer.append(parse('<div class="block"></div>'));
      answer.children[block.i].innerHTML = block.html;
    }
  },
  gone() { keep(""); },
};

// follow reads the stream until the secret opens nothing any more.
let followed = "";
const follow = async () => {
  const secret = visitor.value;
  if (!secret || followed === secret) return;
  followed = secret;
  while (visitor.value === secret) {
    try {
      const response = await fetch(`${location.pathname}/stream`, {
        method: "POST", body: new URLSearchParams({ visitor: secret }), headers: { Accept: "text/event-stream" },
      });
      if (response.status === 401) { keep(""); list.replaceChildren(); return; }
      if (!response.ok) throw new Error(response.statusText);
      document.body.classList.remove("cut");
      let rest = "";
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        const frames = (rest + part.value).split("\n\n");
        rest = frames.pop();
        for (const one of frames) {
          const event = /^event: (\w+)$/m.exec(one)?.[1];
          if (event) handlers[event](JSON.parse(/^data: (.*)$/m.exec(one)[1]));
        }
        toEnd();
      }
    } catch {
      say.textContent = document.body.dataset.cut;
      document.body.classList.add("cut");
    }
    await new Promise((resolve) => { setTimeout(resolve, 1000); });
  }
};

const showProblem = (detail) => {
  document.querySelector(".problem")?.remove();
  if (!detail) return;
  const line = parse('<p class="problem" role="alert"></p>');
  line.textContent = detail;
  form.before(line);
};

const newID = () => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
let failed; // what was typed and may have been sent: sent again, it keeps its id

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const typed = text.value;
  if (!typed.trim() || form.ariaBusy) return;
  form.ariaBusy = "true";
  if (failed !== undefined && failed !== typed.trim()) client.value = newID();
  const shown = parse('<li class="turn person sending"><article><div class="bubble"></div></article></li>');
  shown.id = `sent-${client.value}`;
  shown.querySelector(".bubble").textContent = typed.trim();
  const body = new URLSearchParams(new FormData(form));
  list.append(shown);
  following = true;
  toEnd();
  text.value = "";
  showProblem("");
  let detail = document.body.dataset.cut;
  try {
    const response = await fetch(location.pathname, { method: "POST", body, headers: { Accept: "application/json" } });
    const said = await response.json();
    detail = response.ok ? "" : said.detail;
    if (said.visitor) { keep(said.visitor); list.replaceChildren(shown); }
  } catch { /* it was not sent */ }
  form.ariaBusy = null;
  if (detail) {
    shown.remove();
    failed = typed.trim();
    text.value = typed;
    showProblem(detail);
    return;
  }
  failed = undefined;
  client.value = newID();
  follow();
});
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});

// readable returns a colour that text of a background can stand on: it is mixed with ink until the contrast is 4.5.
const channels = (color) => {
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const luminance = (rgb) => rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const readable = (color) => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const surface = luminance(dark ? [21, 27, 28] : [255, 255, 255]);
  let rgb = channels(color);
  const contrast = () => (Math.max(luminance(rgb), surface) + 0.05) / (Math.min(luminance(rgb), surface) + 0.05);
  while (contrast() < 4.5) rgb = rgb.map((c) => (dark ? Math.ceil(c + (255 - c) * 0.1) : Math.floor(c * 0.9)));
  return `rgb(${rgb.join(" ")})`;
};

// The page around the frame, which is of a site that may show it, sets the accent and the name.
if (parent !== window) {
  const close = document.querySelector(".close");
  close.hidden = false;
  close.addEventListener("click", () => parent.postMessage({ regie: "close" }, "*"));
  addEventListener("keydown", (event) => { if (event.key === "Escape") parent.postMessage({ regie: "close" }, "*"); });
  addEventListener("focus", () => text.focus());
  addEventListener("message", (event) => {
    if (event.source !== parent || event.data?.regie !== "look") return;
    if (CSS.supports("color", event.data.accent)) document.documentElement.style.setProperty("--accent", readable(event.data.accent));
    text.focus();
    if (event.data.name) document.getElementById("title").textContent = String(event.data.name).slice(0, 60);
  });
  parent.postMessage({ regie: "ready" }, "*");
}
follow();

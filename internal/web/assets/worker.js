// Holds one event stream for all tabs of a browser, because HTTP/1.1 allows six connections to a server.
const pages = new Map(); // what each port's page shows: its stream, and how far it is
let source;
let timer;

const post = (name, list = pages) => { for (const port of list.keys()) port.postMessage({ name }); };

const address = (page) => {
  const url = new URL(page.stream, location.href);
  if (page.seq) url.searchParams.set("after", page.seq);
  if (page.again) url.searchParams.set("again", "yes");
  return url.pathname + url.search;
};

const open = () => {
  source?.close();
  source = undefined;
  if (!pages.size) return;
  const list = new Map(pages);
  const query = new URLSearchParams([...list.values()].map((page) => ["page", address(page)]));
  const mine = new EventSource(`/stream?${query}`);
  source = mine;
  mine.addEventListener("open", () => post("open", list));
  [...list].forEach(([port, page], place) => {
    for (const name of ["sync", "live", "gone"]) {
      mine.addEventListener(`${place} ${name}`, (event) => {
        page.again = true;
        if (name === "sync") page.seq = event.lastEventId;
        if (name === "gone") pages.delete(port);
        port.postMessage({ name, data: event.data, seq: page.seq });
      });
    }
    mine.addEventListener(`${place} failed`, () => schedule(5000));
  });
  mine.addEventListener("error", async () => {
    mine.close();
    post("cut", list);
    const reply = await fetch("/stream", { headers: { Accept: "application/json" } }).catch(() => null);
    if (source !== mine) return;
    if (reply?.status === 401) post("ended", list);
    schedule(reply?.status === 401 ? 5000 : 1000);
  });
};

const schedule = (after) => {
  clearTimeout(timer);
  timer = setTimeout(open, after);
};

addEventListener("connect", ({ ports: [port] }) => {
  port.addEventListener("message", ({ data }) => {
    pages.delete(port);
    if (data.stream) pages.set(port, data);
    schedule(data.stream ? 0 : 200);
  });
  port.start();
});

// The launcher: <script src="https://HOST/widget.js" data-widget="NAME" data-accent="#0a6670" data-name="Help"></script>
(() => {
  const { widget, accent = "#0a6670", name = "Chat" } = document.currentScript.dataset;
  const server = new URL(document.currentScript.src).origin;
  // A colour that is none leaves the petrol; the icon is dark on a light one.
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.fillStyle = "#0a6670";
  canvas.fillStyle = accent;
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data;
  const ink = 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#14201f" : "#fff";
  const host = document.createElement("div");
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`
    :host { all: initial; position: fixed; inset: auto 16px 16px auto; z-index: 2147483000; }
    button { display: grid; place-items: center; width: 56px; height: 56px; padding: 0; border: 0; border-radius: 50%; cursor: pointer;
      background: rgb(${red} ${green} ${blue}); box-shadow: 0 2px 6px rgb(0 0 0 / 8%), 0 12px 32px rgb(0 0 0 / 14%); }
    button:focus-visible { outline: 2px solid #fff; box-shadow: 0 0 0 4px #14201f; }
    svg { width: 24px; height: 24px; fill: none; stroke: ${ink}; stroke-width: 1.6; stroke-linejoin: round; }
    iframe { position: fixed; right: 16px; bottom: 84px; width: 384px; height: min(600px, calc(100dvh - 100px)); border: 0; border-radius: 16px;
      background: #fff; box-shadow: 0 2px 6px rgb(0 0 0 / 8%), 0 12px 32px rgb(0 0 0 / 14%); color-scheme: light dark; }
    iframe[hidden] { display: none; }
    @media (max-width: 480px) { iframe { right: 6px; bottom: 6px; width: calc(100% - 12px); height: min(600px, calc(100dvh - 12px)); } }
  `);
  root.adoptedStyleSheets = [sheet];
  const button = document.createElement("button");
  button.type = "button";
  button.ariaLabel = name;
  button.ariaExpanded = "false";
  button.innerHTML = '<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M2.5 3h11v8h-7l-3 2.5V11h-1z"/></svg>';
  root.append(button);
  let frame;
  const look = () => frame.contentWindow.postMessage({ regie: "look", accent, name: name === "Chat" ? "" : name }, server);
  const show = (open) => {
    if (!frame) {
      frame = document.createElement("iframe");
      frame.src = `${server}/widget/${encodeURIComponent(widget)}`;
      frame.title = name;
      root.append(frame);
    }
    frame.hidden = !open;
    button.ariaExpanded = String(open);
    (open ? frame : button).focus();
  };
  button.addEventListener("click", () => show(!frame || frame.hidden));
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && frame && !frame.hidden) show(false);
  });
  addEventListener("message", (event) => {
    if (!frame || event.source !== frame.contentWindow || event.origin !== server) return;
    if (event.data?.regie === "ready") { frame.focus(); look(); }
    if (event.data?.regie === "close") show(false);
  });
  const add = () => document.body.append(host);
  if (document.body) add();
  else addEventListener("DOMContentLoaded", add);
})();

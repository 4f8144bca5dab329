// What every page does: themes, copying, the overlay of keys, bars.
"use strict";
const vigil = (() => {
  const root = document.documentElement;
  const themes = ["", "light", "dark"];
  // A page from a file may be denied storage: it then forgets, no more.
  const recall = () => { try { return localStorage.getItem("vigil-theme") || ""; } catch { return ""; } };
  const keep = t => { try { localStorage.setItem("vigil-theme", t); } catch { /* forgotten */ } };
  let inks = new Map();
  function set(theme) {
    if (!themes.includes(theme)) theme = "";
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    for (const b of document.querySelectorAll("button[data-theme]")) {
      b.textContent = { "": "◐", light: "☀", dark: "☾" }[theme];
      b.title = "theme: " + (theme || "as the system has it") + " (T)";
      b.setAttribute("aria-label", b.title);
    }
    inks = new Map();
    document.dispatchEvent(new Event("vigil:theme"));
  }
  function next() {
    const t = themes[(themes.indexOf(root.dataset.theme || "") + 1) % themes.length];
    keep(t);
    set(t);
  }
  // A colour of the style sheet as the theme that is on has it, for canvases.
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  function ink(name) {
    let c = inks.get(name);
    if (!c) {
      probe.style.color = "var(--" + name + ")";
      c = getComputedStyle(probe).color;
      inks.set(name, c);
    }
    return c;
  }
  async function copy(text) {
    try { await navigator.clipboard.writeText(text); return; } catch { /* a file has no clipboard in some browsers */ }
    const t = document.createElement("textarea");
    t.value = text;
    document.body.append(t);
    t.select();
    document.execCommand("copy");
    t.remove();
  }
  document.addEventListener("click", e => {
    const b = e.target.closest && e.target.closest("[data-copy], button[data-theme], button[data-keys]");
    if (!b) return;
    if (b.dataset.copy !== undefined) {
      copy(b.dataset.copy);
      const was = b.textContent;
      b.textContent = "copied";
      setTimeout(() => { b.textContent = was; }, 900);
    } else if (b.dataset.theme !== undefined) next();
    else help();
  });
  const keys = document.getElementById("keys");
  function help() { if (keys.open) keys.close(); else keys.showModal(); }
  // True where a key is being typed into a field and means itself.
  const typing = e => e.target.matches && e.target.matches("input:not([type=range]):not([type=checkbox]), textarea, select");
  document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || typing(e)) return;
    if (e.key === "?") { help(); e.preventDefault(); } else if (e.key === "t" || e.key === "T") next();
  });
  for (const b of document.querySelectorAll(".bar[data-share]")) b.firstElementChild.style.width = 100 * Math.min(1, Math.max(0, +b.dataset.share)) + "%";
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => set(root.dataset.theme || ""));
  set(recall());
  return { ink, copy, typing, help, theme: set };
})();

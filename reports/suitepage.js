// The page of a suite: its scenarios, what broke, what was covered. A run's
// timeline is a view of the same page, under #run=NAME.
(async () => {
  const model = JSON.parse(document.getElementById("model").textContent);
  const suite = model.suite, root = document.getElementById("suite"), runRoot = document.getElementById("run");
  const el = (tag, attributes, ...inside) => {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes || {})) {
      if (k === "class") e.className = v;
      else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
      else if (v !== undefined && v !== false && v !== null) e.setAttribute(k, v === true ? "" : v);
    }
    e.append(...inside.filter(i => i !== undefined && i !== null && i !== false));
    return e;
  };
  const whole = n => n.toLocaleString("en");
  const short = n => n >= 1e9 ? (n / 1e9).toPrecision(3) + "G" : n >= 1e6 ? (n / 1e6).toPrecision(3) + "M" : n >= 1e4 ? Math.round(n / 1e3) + "k" : whole(Math.round(n));
  const span = s => s >= 2 * 86400 ? (s / 86400).toFixed(s < 864000 ? 1 : 0) + " d" : s >= 5970 ? (s / 3600).toFixed(1) + " h" : s >= 120 ? (s / 60).toFixed(1) + " min" : s.toFixed(s < 10 ? 2 : 1) + " s";
  const sort = v => v === "pass" ? "good" : v === "missed" || v === "unknown" || v === "skipped" ? "warn" : "bad";
  const open = run => el("a", { href: "#run=" + encodeURIComponent(model.runs[run].name), class: "open" }, "seed " + model.runs[run].seed);

  // ---- what came --------------------------------------------------------
  const gravity = ["nondeterminism", "panic", "safety", "liveness", "missed", "unknown"];
  const failed = suite.scenarios.map((s, i) => i).filter(i => model.rows[i].failed).sort((a, b) => gravity.indexOf(suite.scenarios[a].verdict) - gravity.indexOf(suite.scenarios[b].verdict) || a - b);
  const passed = suite.scenarios.filter((s, i) => s.verdict === "pass" && !s.skipped).length;
  const expected = suite.scenarios.filter((s, i) => s.verdict === "pass" && model.rows[i].breaks.length).length;
  const skipped = suite.scenarios.filter(s => s.skipped).length;
  const t = suite.totals;
  const banner = el("section", { class: "banner " + sort(suite.verdict), id: "verdict" },
    el("p", { class: "headline" }, el("span", { class: "chip " + sort(suite.verdict) }, suite.verdict.toUpperCase()), " ",
      el("b", {}, suite.scenarios.length + (suite.scenarios.length === 1 ? " scenario" : " scenarios") + ", design " + suite.design), ": " + passed + " passed" + (failed.length ? ", " : ""),
      failed.length ? el("b", { class: "wrong" }, failed.length + " failed") : null, skipped ? ", " + skipped + " skipped" : ""),
    expected ? el("p", { class: "dim" }, expected + " of the passes are expected breaks: design " + suite.design + " is known to break that invariant there, and the runs check that it does and that nothing else breaks.") : null,
    suite.note ? el("p", { class: "dim" }, suite.note) : null,
    model.stopped ? el("p", { class: "never" }, model.stopped) : null,
    el("div", { class: "figures", id: "figures" },
      ...[[whole(t.runs), "runs"], [short(t.events), "events"], [span(t.sim_seconds), "simulated"], [span(t.wall_seconds), "waited"], [short(t.events_per_second), "events a second"], [short(t.sim_over_real) + "×", "real time"]]
        .map(([n, w]) => el("div", {}, el("b", {}, n), el("span", {}, w)))));

  const cards = failed.map(i => {
    const s = suite.scenarios[i], r = model.rows[i], v = s.violations[r.report], e = r.examples[r.report];
    const fail = el("section", { class: "card fail", "data-failed": s.id || s.name });
    const invariant = v ? v.invariant : "";
    fail.append(el("p", { class: "headline" }, el("span", { class: "chip " + sort(s.verdict) }, s.verdict.toUpperCase()), " ", el("b", {}, r.title),
      v ? [": ", invariant.startsWith("expect ") ? "what it expects did not come: " + invariant.slice(7) : invariant + " broke"].join("") : ": " + r.words,
      v && v.actors.length ? " for " + v.actors.join(", ") : "", v && v.token ? " at " + v.at_seconds.toFixed(3) + " s, seed " + e.seed : ""));
    if (v) fail.append(el("p", { class: "reason" }, v.message));
    fail.append(el("p", { class: "dim" }, r.story + (s.runs > 1 ? " · failed in " + whole(s.failed_runs) + " of " + whole(s.runs) + " runs" : "") + (s.expected !== "pass" ? " · expected: " + s.expected : "")));
    for (const n of s.notes || []) fail.append(el("p", { class: "dim" }, n));
    const acts = el("p", { class: "acts" });
    const runs = [...new Set([...(e && e.run >= 0 ? [e.run] : []), ...r.examples.filter(x => !x.declared && x.run >= 0).map(x => x.run)])];
    runs.forEach((run, k) => { const a = open(run); if (k === 0) { a.textContent = "Open its timeline"; a.className = "open first"; } acts.append(a); });
    if (e && e.replay) acts.append(el("code", {}, e.replay), el("button", { class: "small", "data-copy": e.replay }, "copy"));
    if (v && v.capsule) acts.append(el("span", { class: "dim" }, "capsule " + v.capsule));
    fail.append(acts);
    return fail;
  });

  // ---- the scenarios ----------------------------------------------------
  const speed = s => s.wall_seconds > 0 ? s.sim_seconds / s.wall_seconds : 0;
  const columns = [
    ["id", "", s => s.id || s.name, 0], ["scenario", "", (s, r) => r.title, 0], ["verdict", "", (s, r) => r.word, 0], ["expected break", "", (s, r) => r.breaks.join(", "), 0],
    ["runs", "n", s => s.runs, 1], ["events", "n", s => s.events, 1], ["simulated", "n", s => s.sim_seconds, 1], ["speed", "n", speed, 1], ["timelines", "", (s, r) => r.examples.filter(e => e.run >= 0).length, 1],
  ];
  const tbody = el("tbody");
  let by = -1, down = false, filter = "all";
  const query = el("input", { type: "search", id: "filter", placeholder: "filter (/)", "aria-label": "filter the scenarios" });
  const heads = columns.map(([name, cls], c) => el("th", { class: cls, tabindex: 0, role: "button", onclick: () => { down = by === c ? !down : columns[c][3] === 1; by = c; rows(); }, onkeydown: e => { if (e.key === "Enter") e.currentTarget.click(); } }, name));
  const sorts = { all: () => true, failed: (s, r) => r.failed, "expected breaks": (s, r) => r.breaks.length > 0, passed: s => s.verdict === "pass" };
  const tabs = Object.keys(sorts).map(name => el("button", { class: "small", onclick: () => { filter = name; rows(); } }, name));
  const shown = el("span", { class: "dim num" });
  function rows() {
    const words = query.value.trim().toLowerCase();
    let list = suite.scenarios.map((s, i) => i).filter(i => {
      const s = suite.scenarios[i], r = model.rows[i];
      return sorts[filter](s, r) && (!words || [s.id, s.name, r.story, r.word, s.expected].join(" ").toLowerCase().includes(words));
    });
    if (by >= 0) list.sort((a, b) => {
      const x = columns[by][2](suite.scenarios[a], model.rows[a]), y = columns[by][2](suite.scenarios[b], model.rows[b]);
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    heads.forEach((h, c) => { if (c === by) h.setAttribute("aria-sort", down ? "descending" : "ascending"); else h.removeAttribute("aria-sort"); });
    tabs.forEach(b => b.classList.toggle("on", b.textContent === filter));
    shown.textContent = list.length + " of " + suite.scenarios.length;
    tbody.replaceChildren(...list.map(i => {
      const s = suite.scenarios[i], r = model.rows[i];
      const links = [...new Set(r.examples.filter(e => e.run >= 0).map(e => e.run))];
      return el("tr", { class: r.failed ? "failed" : "" },
        el("td", { class: "mono" }, s.id), el("td", {}, s.name, el("span", { class: "dim" }, s.skipped ? "skipped: " + s.skipped : r.story)),
        el("td", {}, el("span", { class: "chip " + sort(r.word) }, r.word)),
        el("td", {}, el("span", { class: "chips" }, ...r.breaks.map(b => el("span", { class: "chip warn", title: s.expected }, b)))),
        el("td", { class: "n" }, whole(s.runs)), el("td", { class: "n" }, short(s.events)), el("td", { class: "n" }, span(s.sim_seconds)), el("td", { class: "n" }, s.wall_seconds > 0 ? short(speed(s)) + "×" : ""),
        el("td", {}, ...links.flatMap(l => [open(l), " "])));
    }));
  }
  query.addEventListener("input", rows);
  const table = el("section", { class: "card" }, el("div", { class: "head" }, el("h2", {}, "Scenarios"), query, ...tabs, shown),
    el("div", { class: "scroll" }, el("table", { class: "grid scenarios", id: "scenarios" }, el("thead", {}, el("tr", {}, ...heads)), tbody)));

  // ---- known breaks -----------------------------------------------------
  const broken = new Map();
  suite.scenarios.forEach((s, i) => { for (const b of model.rows[i].breaks) { if (!broken.has(b)) broken.set(b, []); broken.get(b).push(i); } });
  const known = broken.size ? el("section", { class: "card", id: "breaks" }, el("h2", {}, "What design " + suite.design + " is known to break"),
    el("div", { class: "scroll" }, el("table", { class: "grid seen" }, el("thead", {}, el("tr", {}, el("th", {}, "invariant"), el("th", { class: "n" }, "scenarios"), el("th", {}, "which"))),
      el("tbody", {}, ...[...broken].sort((a, b) => b[1].length - a[1].length).map(([name, list]) => el("tr", {}, el("td", {}, name), el("td", { class: "n" }, String(list.length)),
        el("td", {}, el("span", { class: "chips" }, ...list.map(i => {
          const k = suite.scenarios[i].violations.findIndex((v, k) => v.invariant === name && model.rows[i].examples[k].run >= 0);
          const words = suite.scenarios[i].id || suite.scenarios[i].name;
          return k < 0 ? el("span", { class: "chip" }, words) : el("a", { class: "chip info", href: "#run=" + encodeURIComponent(model.runs[model.rows[i].examples[k].run].name) }, words);
        }))))))))) : null;

  // ---- coverage ---------------------------------------------------------
  const covered = suite.scenarios.filter(s => s.coverage);
  const coverage = [];
  for (const [head, met, not, none] of [["Faults", "faults", "faults_not_met", "fired in no run"], ["States of an instance's life", "states", "states_not_met", "no run came there"], ["Protections", "protections", "protections_not_met", "changed no run"]]) {
    const names = new Map();
    for (const s of covered) {
      for (const [n, runs] of Object.entries(s.coverage[met] || {})) { if (!names.has(n)) names.set(n, { runs: 0, ids: [] }); names.get(n).runs += runs; names.get(n).ids.push(s.id || s.name); }
      for (const n of s.coverage[not] || []) if (!names.has(n)) names.set(n, { runs: 0, ids: [] });
    }
    if (!names.size) continue;
    const list = [...names].sort((a, b) => (a[1].ids.length ? 1 : 0) - (b[1].ids.length ? 1 : 0) || a[0].localeCompare(b[0]));
    const hit = list.filter(([, c]) => c.runs > 0).length;
    coverage.push(el("section", { class: "card" }, el("h2", {}, head + ": " + hit + " of " + list.length), el("div", { class: "scroll" }, el("table", { class: "grid seen" },
      el("thead", {}, el("tr", {}, el("th", {}, "name"), el("th", { class: "n" }, "runs"), el("th", {}, "in"))),
      el("tbody", {}, ...list.map(([n, c]) => el("tr", {}, el("td", { class: c.runs ? "" : "never" }, n), el("td", { class: "n" }, whole(c.runs)),
        el("td", { class: c.runs ? "dim" : "never" }, c.runs ? [...new Set(c.ids.map(i => i.split("/")[0]))].join(" ") : none))))))));
  }

  const most = 6; // the gravest stand open; a hundred would hide the table
  if (cards.length > most + 1) cards.push(el("details", { class: "more" }, el("summary", {}, cards.length - most + " more failed"), ...cards.splice(most)));
  root.replaceChildren(banner, ...cards, table, ...(known ? [known] : []),
    ...(coverage.length ? [el("section", { class: "cards", id: "coverage" }, ...coverage)] : []),
    ...(model.left ? [el("p", { class: "dim" }, model.left + " more examples have no timeline here: this page keeps " + model.runs.length + ". Their commands replay them, with --html too.")] : []));
  rows();

  // ---- one run, or all --------------------------------------------------
  const read = new Map();
  let api = null, current = null;
  async function route() {
    const name = new URLSearchParams(location.hash.slice(1)).get("run");
    const k = name === null ? -1 : model.runs.findIndex(r => r.name === name);
    if (k === current) return;
    if (api) { api.close(); api = null; }
    current = k;
    runRoot.hidden = k < 0;
    root.hidden = k >= 0;
    if (k < 0) { scrollTo(0, 0); return; }
    if (!read.has(k)) read.set(k, await spacetime.open(document.getElementById("run-" + k).textContent));
    if (current !== k) return;
    api = spacetime.show(read.get(k), runRoot, { name, back: e => { e.preventDefault(); location.hash = ""; } });
    scrollTo(0, 0);
  }
  addEventListener("hashchange", route);
  document.addEventListener("keydown", e => {
    if (root.hidden || vigil.typing(e) || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "/") { query.focus(); e.preventDefault(); }
  });
  await route();
  document.documentElement.dataset.ready = Math.round(performance.now());
})();

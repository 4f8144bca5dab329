// The page of one run: the diagram, the slider, what held at the moment, the
// records around it, filters and keys. spacetime.show(run, root) builds it in
// root; one page may show one run after another.
spacetime.show = (run, root, options) => {
  options = options || {};
  const el = (tag, attributes, ...inside) => {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes || {})) {
      if (k === "class") e.className = v;
      else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
      else if (v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
    }
    e.append(...inside.filter(i => i !== undefined && i !== null && i !== false));
    return e;
  };
  const put = (e, words) => { if (e.textContent !== words) e.textContent = words; };
  const at = t => spacetime.seconds(t, 1e6) + " s";
  root.replaceChildren();

  // ---- what broke -------------------------------------------------------
  const gravity = ["nondeterminism", "panic", "safety", "liveness", "missed", "unknown"];
  const rank = v => (v.declared ? 10 : 0) + gravity.indexOf(v.verdict);
  const order = run.broken.map((v, i) => i).sort((a, b) => rank(run.broken[a]) - rank(run.broken[b]) || run.broken[a].at - run.broken[b].at);
  const banner = el("section", { class: "banner", id: "verdict" });
  let chosen = order.length ? order[0] : -1;
  function tellBanner() {
    const v = run.broken[chosen];
    banner.className = "banner " + (v ? (v.declared ? "warn" : "bad") : "good");
    if (!v) {
      banner.replaceChildren(el("p", { class: "headline" }, el("span", { class: "chip " + (run.verdict === "pass" ? "good" : "info") }, (run.verdict || "").toUpperCase()),
        run.verdict === "pass" ? " Nothing broke: every invariant held from 0 s to " + at(run.end) + "." : " No broken invariant in these records."));
    } else {
      const expects = v.invariant.startsWith("expect ");
      const sort = { safety: "SAFETY", liveness: "LIVENESS", missed: "MISSED", panic: "PANIC" }[v.verdict] || v.verdict.toUpperCase();
      const facts = el("div", { class: "why" });
      facts.append(el("p", { class: "headline" },
        el("span", { class: "chip " + (v.declared ? "warn" : "bad") }, v.declared ? sort + ", EXPECTED" : sort), " ",
        el("b", {}, expects ? "Not as the scenario expects: " + v.invariant.slice(7) : v.invariant), expects ? " does not hold" : " broke",
        v.actors.length ? " for " : "", v.actors.length ? el("b", {}, v.actors.join(", ")) : "",
        " at ", el("button", { class: "small moment", onclick: () => go(v.at, true), title: "go to this moment" }, at(v.at))));
      facts.append(el("p", { class: "reason" }, v.message));
      if (v.promise) facts.append(el("p", { class: "dim" }, el("b", {}, v.invariant), " promises: " + v.promise));
      if (v.declared) facts.append(el("p", { class: "dim" }, "The scenario declares that design " + run.design + " breaks this: the run passes because it did."));
      const parts = [facts];
      if (v.story.length) {
        parts.push(el("details", { class: "led", open: innerWidth > 760 }, el("summary", {}, "What led there"), el("ol", {}, ...v.story.map(i =>
          el("li", {}, el("button", { class: "link", onclick: () => go(run.at[i], true) },
            el("span", { class: "num" }, spacetime.seconds(run.at[i], 1e7) + " s"), el("b", { class: run.wrong(i) ? "wrong" : "" }, run.who(i)), el("span", { class: run.wrong(i) ? "wrong" : "" }, run.words(i))))))));
      }
      banner.replaceChildren(el("div", { class: "split" }, ...parts));
    }
    if (run.broken.length > 1) {
      banner.append(el("p", { class: "others" }, el("span", { class: "dim" }, run.broken.length + " things broke: "), ...order.slice(0, 12).map(i => {
        const o = run.broken[i];
        return el("button", { class: "small" + (i === chosen ? " on" : ""), onclick: () => choose(i) }, o.invariant.replace("expect ", "") + " " + o.actors.join(", ") + " " + at(o.at));
      })));
    }
    if (run.replay) banner.append(el("p", { class: "replay" }, el("span", { class: "dim" }, "Again: "), el("code", {}, run.replay), " ", el("button", { class: "small", "data-copy": run.replay }, "copy")));
  }
  function choose(i) { chosen = i; tellBanner(); go(run.broken[i].at, true); }

  // ---- the diagram ------------------------------------------------------
  const canvas = el("canvas", { id: "diagram", "aria-label": "space-time diagram" }), overlay = el("canvas", { class: "over" });
  const stage = el("div", { class: "stage", id: "stage" }, canvas, overlay);
  const tip = el("div", { class: "tip", hidden: true });
  const strip = el("canvas", { id: "strip", height: 26, "aria-label": "the whole run; drag to look at a part" });
  const slider = el("input", { type: "range", id: "slider", min: 0, max: 1000000, step: 1, value: 0, "aria-label": "moment of virtual time" });
  const field = el("input", { type: "text", id: "moment", size: 11, inputmode: "decimal", "aria-label": "go to a moment", title: "go to a moment, such as 261.5s" });
  const play = el("button", { id: "play", title: "play (space)", onclick: () => toggle() }, "▶");
  const tools = el("div", { class: "tools" },
    play, field,
    el("button", { onclick: () => stepRecord(-1), title: "record before (←)" }, "‹"),
    el("button", { onclick: () => stepRecord(1), title: "record after (→)" }, "›"),
    el("span", { class: "gap" }),
    el("button", { onclick: () => zoom(.5), title: "closer (+)" }, "+"),
    el("button", { onclick: () => zoom(2), title: "farther (−)" }, "−"),
    el("button", { onclick: () => { diagram.view(0, run.end); redraw(); }, title: "the whole run (0)" }, "whole run"),
    el("span", { class: "gap" }),
    el("button", { id: "link", onclick: e => { save(true); vigil.copy(location.href); put(e.currentTarget, "copied"); setTimeout(b => put(b, "link to here"), 900, e.currentTarget); } }, "link to here"),
    el("details", { class: "legend" }, el("summary", {}, "legend"), el("ul", {},
      ...[["ink", "line", "a process that runs; dashed: frozen; ✕: killed"], ["accent", "box", "a server-driven context that serves"], ["good", "box", "an engine-driven context"],
        ["warn", "hatch", "a context in release: it serves no more, its bytes are still held"], ["bad", "hatch", "a release that hangs"],
        ["good", "fill", "its lease: full at each sign of life; at the ground the window is over"], ["accent", "hatch", "frozen"], ["warn", "hatch", "link cut"],
        ["dim", "tick", "a ping; full arrows when you come closer"], ["bad", "cross", "a message lost, refused or given up"], ["ink", "dot", "a record of the story; hover it"]].map(([c, s, w]) => el("li", {}, el("i", { class: "key " + s + " c-" + c }), w)))));
  const filters = el("div", { class: "filters" });
  const search = el("input", { type: "search", id: "search", placeholder: "search records (/)", "aria-label": "search records" });

  // ---- what held at the moment ------------------------------------------
  const facts = el("div", { class: "serverfacts", id: "serverstate" });
  const chips = {};
  for (const key of ["process", "serving", "held", "release", "stuck", "waiting", "reaped", "scan"]) facts.append(chips[key] = el("span", { class: "chip" }));
  const body = el("tbody");
  const table = el("table", { class: "grid workers" }, el("thead", {}, el("tr", {}, ...["worker", "process", "link", "heartbeat", "context", "bytes", "silent, of its window", "in flight"].map((h, i) => el("th", { class: i === 5 || i === 7 ? "n" : "" }, h)))), body);
  const mostRows = 40;
  const rows = run.order;
  const cells = rows.slice(0, mostRows).map(i => {
    const tr = el("tr", {}, ...["worker", "process", "link", "heartbeat", "context", "bytes", "lease", "in flight"].map((h, k) => el("td", { class: k === 5 || k === 7 ? "n" : "", "data-label": h })));
    const c = [...tr.children];
    c[0].append(el("b", {}, run.lanes[i].name));
    c[6].append(el("span", { class: "bar good" }, el("i")), el("span", { class: "leasewords num" }));
    body.append(tr);
    return { lane: i, tr, c, bar: c[6].firstChild, fill: c[6].firstChild.firstChild, words: c[6].lastChild };
  });
  const stateHead = el("h2");
  const words = {
    process: ["not started", "runs", "frozen", "killed", "left"],
    link: ["no connection", "connected", "cut"],
    health: ["none yet", "healthy", "UNHEALTHY", "stopped"],
  };
  const paint = (e, text, sort) => { put(e, text); const c = "chip" + (sort ? " " + sort : ""); if (e.className !== c) e.className = c; };
  function tellState() {
    put(stateHead, "At " + at(now));
    const s = run.server(now);
    paint(chips.process, "server " + words.process[s.process], s.process === 1 ? "good" : s.process === 2 ? "warn" : s.process ? "bad" : "");
    paint(chips.serving, s.serving + (s.serving === 1 ? " context serves" : " contexts serve"));
    paint(chips.held, spacetime.bytes(s.held) + " held");
    paint(chips.release, s.releasing + " in release" + (s.releasing ? ", " + spacetime.bytes(s.releasingBytes) : ""), s.releasing ? "warn" : "");
    paint(chips.stuck, s.stuck + " stuck", s.stuck ? "bad" : "");
    paint(chips.waiting, s.waiting + " requests wait", s.waiting > 4 ? "warn" : "");
    paint(chips.reaped, s.reaped + " reaped so far", s.reaped ? "warn" : "");
    paint(chips.scan, s.scan < 0 ? "no scan yet" : "last scan " + spacetime.span(now - s.scan) + " ago");
    for (const r of cells) {
      const l = run.lanes[r.lane], unborn = l.began > now || l.began < 0;
      const cls = (unborn ? "dim" : "") + (run.broken[chosen] && run.broken[chosen].lanes.includes(r.lane) ? " hot" : "");
      if (r.tr.className !== cls) r.tr.className = cls;
      const p = l.process.length ? run.track(l.process, now) : 1, h = run.track(l.health, now), k = run.track(l.link, now);
      put(r.c[1], unborn ? "not started" : l.process.length ? words.process[p] : "not known");
      r.c[1].className = p === 3 ? "bad" : p === 2 ? "warn" : "";
      put(r.c[2], unborn || p >= 3 ? "" : l.process.length ? words.link[k] : "not known");
      r.c[2].className = k === 2 ? "warn" : "";
      put(r.c[3], unborn || p >= 3 ? "" : words.health[h]);
      r.c[3].className = h === 2 ? "bad" : "";
      const bars = run.barsAt(r.lane, now), main = bars.find(b => !b.rope && run.barState(b, now) === "serving") || bars.find(b => !b.rope) || bars[0];
      const others = bars.length > 1 ? " (+" + (bars.length - 1) + ")" : "";
      put(r.c[4], main ? "#" + main.incarnation + " " + (main.rope ? "blend " : "") + run.barState(main, now) + others : "none");
      r.c[4].className = main ? (run.barState(main, now).includes("hang") || run.barState(main, now) === "stuck" ? "bad" : "") : p === 1 && !unborn ? "warn" : "dim";
      put(r.c[5], bars.length ? spacetime.bytes(bars.reduce((n, b) => n + b.bytes, 0)) : "");
      const lease = main && run.reap > 0 && run.barState(main, now) === "serving" ? run.lease(main, now) : null;
      r.bar.style.visibility = lease ? "visible" : "hidden";
      if (lease) {
        const silent = now - lease.stamp, left = Math.max(0, 1 - silent / lease.window);
        r.fill.style.width = 100 * left + "%";
        const sort = "bar " + (left < .1 ? "bad" : left < .4 ? "warn" : "good");
        if (r.bar.className !== sort) r.bar.className = sort;
        put(r.words, spacetime.span(silent) + " of " + spacetime.span(lease.window));
      } else put(r.words, "");
      const f = run.flying(r.lane, now);
      put(r.c[7], f ? String(f) : "");
    }
  }

  // ---- the records around the moment ------------------------------------
  let everything = false, index = null; // index: the records that the list holds, ascending
  const list = el("ol", { class: "records", id: "records", tabindex: 0 });
  const count = el("span", { class: "dim num" });
  const mode = el("button", { class: "small", id: "mode", onclick: () => { everything = !everything; refilter(); } });
  const visible = 17;
  let lines = [];
  for (let i = 0; i < visible; i++) {
    const b = el("button", { class: "link" }, el("span", { class: "num" }), el("b"), el("span", { class: "say" }));
    const li = el("li", {}, b);
    const line = { li, r: -1, t: b.children[0], who: b.children[1], say: b.children[2] };
    b.addEventListener("click", () => { if (line.r >= 0) { picked = line.r; go(run.at[line.r], true, true); } });
    lines.push(line);
    list.append(li);
  }
  let anchor = 0, picked = -1;
  function tellRecords() {
    put(mode, everything ? "every record" : "the story");
    const upTo = spacetime.upTo(index, now, i => run.at[i]);
    if (picked >= 0 && run.at[picked] !== now) picked = -1;
    let current = upTo;
    if (picked >= 0) { const k = spacetime.upTo(index, picked); if (index[k] === picked) current = k; }
    const top = Math.max(0, Math.min(index.length - visible, current - 8 + anchor));
    put(count, (current + 1).toLocaleString("en") + " of " + index.length.toLocaleString("en"));
    for (let i = 0; i < visible; i++) {
      const l = lines[i], k = top + i, r = k < index.length ? index[k] : -1;
      l.li.hidden = r < 0;
      const cls = (k === current ? "current" : k > upTo ? "later" : "") + (r >= 0 && run.wrong(r) ? " wrong" : "");
      if (l.li.className !== cls) l.li.className = cls;
      if (l.r === r) continue;
      l.r = r;
      if (r < 0) continue;
      put(l.t, spacetime.seconds(run.at[r], 1e3) + " s");
      put(l.who, run.who(r));
      put(l.say, run.words(r));
    }
  }
  list.addEventListener("wheel", e => {
    anchor += Math.sign(e.deltaY) * 3;
    anchor = Math.max(-index.length, Math.min(index.length, anchor));
    tellRecords();
    e.preventDefault();
  }, { passive: false });

  // ---- filters ----------------------------------------------------------
  function refilter() {
    const query = search.value.trim().toLowerCase(), g = diagram.show.groups, on = diagram.show.lanes;
    let n = 0;
    const keep = new Uint32Array(run.n), found = query ? new Uint8Array(run.n) : null;
    for (let i = 0; i < run.n; i++) {
      const l = run.on[i];
      if (l > 0 && !on[l] || !g[run.group(i)]) continue;
      if (query) {
        if (!(run.who(i) + " " + run.words(i) + " " + run.kinds[run.kind[i]]).toLowerCase().includes(query)) continue;
        found[i] = 1;
      } else if (!everything && !run.told(i)) continue;
      keep[n++] = i;
    }
    index = keep.subarray(0, n);
    diagram.show.matches = found;
    for (const l of lines) l.r = -2;
    for (const b of filters.querySelectorAll("button[data-group]")) b.classList.toggle("on", g[+b.dataset.group]);
    for (const b of filters.querySelectorAll("button[data-lane]")) b.classList.toggle("on", on[+b.dataset.lane]);
    mode.disabled = !!query;
    anchor = 0;
    diagram.layout();
    redraw();
    save();
  }
  filters.append(search);
  run.groups.forEach((name, i) => filters.append(el("button", { class: "small on", "data-group": i, title: "show or hide (" + (i + 1) + ")", onclick: () => { diagram.show.groups[i] = !diagram.show.groups[i]; refilter(); } }, name)));
  if (run.lanes.length > 2) {
    filters.append(el("span", { class: "gap" }));
    const many = run.lanes.length > 14;
    const box = many ? el("details", { class: "lanes" }, el("summary", {}, run.lanes.length - 1 + " workers")) : filters;
    if (many) filters.append(box);
    run.order.slice(0, 200).forEach(i => { const l = run.lanes[i]; box.append(el("button", { class: "small on", "data-lane": i, title: "show or hide; with Alt: this one alone", onclick: e => {
      const on = diagram.show.lanes;
      if (e.altKey) { const alone = on.every((o, k) => k === 0 || o === (k === i)); on.forEach((o, k) => { on[k] = alone || k === i || k === 0; }); } else on[i] = !on[i];
      refilter();
    } }, l.name)); });
  }
  let searching;
  search.addEventListener("input", () => { clearTimeout(searching); searching = setTimeout(refilter, 150); });
  search.addEventListener("keydown", e => {
    if (e.key === "Enter" && index.length) { const k = spacetime.upTo(index, now, i => run.at[i]); const r = index[Math.min(index.length - 1, k + 1)]; picked = r; go(run.at[r], true, true); }
    if (e.key === "Escape") { search.value = ""; search.blur(); refilter(); }
  });

  // ---- the whole run, small ---------------------------------------------
  let stripImage = null;
  function drawStrip() {
    const w = strip.parentElement.clientWidth, h = 26, k = devicePixelRatio || 1, base = document.createElement("canvas"), g = base.getContext("2d");
    strip.width = base.width = Math.round(w * k);
    strip.height = base.height = Math.round(h * k);
    g.setTransform(k, 0, 0, k, 0, 0);
    g.fillStyle = vigil.ink("raised");
    g.fillRect(0, 0, w, h);
    const n = Math.max(1, Math.floor(w / 2)), all = new Float32Array(n);
    let most = 1;
    for (let i = 0; i < run.n; i++) { const c = Math.min(n - 1, Math.floor(run.at[i] / run.end * n)); most = Math.max(most, ++all[c]); }
    g.fillStyle = vigil.ink("dim");
    g.globalAlpha = .55;
    for (let c = 0; c < n; c++) { const t = Math.sqrt(all[c] / most) * (h - 6); g.fillRect(c * 2, h - t, 1.6, t); }
    g.globalAlpha = .35;
    for (const b of run.bands) { g.fillStyle = vigil.ink(b.kind === "frozen" ? "accent" : b.kind === "down" ? "bad" : "warn"); g.fillRect(b.from / run.end * w, 0, Math.max(1.5, (b.end - b.from) / run.end * w), 7); }
    g.globalAlpha = 1;
    for (const m of run.marks.slice(0, 2000)) { g.fillStyle = vigil.ink("warn"); g.fillRect(m.at / run.end * w, 0, 1, h); }
    for (const v of run.broken) { g.fillStyle = vigil.ink(v.declared ? "warn" : "bad"); g.fillRect(v.at / run.end * w - 1, 0, 2.5, h); }
    stripImage = { w, h, k, base };
  }
  function tellStrip() {
    const { w, h, k, base } = stripImage, g = strip.getContext("2d");
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.drawImage(base, 0, 0);
    g.setTransform(k, 0, 0, k, 0, 0);
    const a = diagram.a / run.end * w, b = diagram.b / run.end * w;
    g.fillStyle = vigil.ink("ground");
    g.globalAlpha = .6;
    g.fillRect(0, 0, a, h);
    g.fillRect(b, 0, w - b, h);
    g.globalAlpha = 1;
    g.strokeStyle = vigil.ink("accent");
    g.lineWidth = 1.5;
    g.strokeRect(a + .75, .75, Math.max(3, b - a - 1.5), h - 1.5);
    g.fillStyle = vigil.ink("accent");
    g.fillRect(now / run.end * w - 1, 0, 2, h);
  }
  drag(strip, x => {
    const w = strip.clientWidth, t = x / w * run.end, span = diagram.b - diagram.a;
    if (span >= run.end * .999) { go(t); return; }
    diagram.view(t - span / 2, t + span / 2);
    redraw();
  });

  // ---- moving -----------------------------------------------------------
  let now = 0;
  const diagram = new spacetime.Diagram(canvas, overlay, run);
  let frame = 0, wantDraw = false;
  function redraw() { wantDraw = true; ask(); }
  function ask() { if (!frame) frame = requestAnimationFrame(paintAll); }
  let hover;
  function paintAll() {
    frame = 0;
    if (!root.isConnected || root.hidden) return;
    if (wantDraw) { wantDraw = false; diagram.draw(); }
    diagram.cursor(now, hover);
    tellStrip();
    tellState();
    tellRecords();
    const v = Math.round(now / run.end * 1e6);
    if (Math.abs(+slider.value - v) > 1) slider.value = v;
    slider.setAttribute("aria-valuetext", at(now));
    if (document.activeElement !== field) field.value = spacetime.seconds(now, 1e6) + "s";
    api.frames++;
  }
  // Go to a moment; near: where it is out of view, or the view is coarse, come close enough to see.
  function go(t, intoView, keepPick) {
    now = Math.max(0, Math.min(run.end, t));
    if (!keepPick) anchor = 0;
    if (now < diagram.a || now > diagram.b) {
      const span = diagram.b - diagram.a;
      diagram.view(now - span / 2, now + span / 2);
      wantDraw = true;
    }
    save();
    ask();
  }
  function zoom(by, around) {
    const inView = now >= diagram.a && now <= diagram.b;
    diagram.zoom(by, around !== undefined ? around : inView ? now : undefined);
    redraw();
    save();
  }
  function stepRecord(by) {
    if (!index.length) return;
    let k = spacetime.upTo(index, now, i => run.at[i]);
    if (picked >= 0 && run.at[picked] === now) { const p = spacetime.upTo(index, picked); if (index[p] === picked) k = p; } else if (by < 0 && k >= 0 && run.at[index[k]] < now) k++;
    k = Math.max(0, Math.min(index.length - 1, k + by));
    picked = index[k];
    anchor = 0;
    go(run.at[picked], true, true);
  }
  function jump(moments, by) {
    const sorted = [...moments].sort((a, b) => a - b), t = by > 0 ? sorted.find(m => m > now + 1) : sorted.reverse().find(m => m < now - 1);
    if (t !== undefined) go(t, true);
  }
  let playing = 0;
  function toggle() {
    if (playing) { playing = 0; put(play, "▶"); return; }
    put(play, "❚❚");
    let last = performance.now();
    const mine = playing = last;
    if (now >= diagram.b - diagram.step) go(diagram.a);
    const tick = t => {
      if (playing !== mine || !root.isConnected) return;
      go(now + (t - last) / 15e3 * (diagram.b - diagram.a));
      last = t;
      if (now >= run.end || now >= diagram.b) { toggle(); return; }
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }
  slider.addEventListener("input", () => go(+slider.value / 1e6 * run.end));
  field.addEventListener("keydown", e => {
    if (e.key !== "Enter") return;
    const t = spacetime.moment(field.value);
    if (t !== undefined) { field.blur(); go(t, true); }
  });

  // A drag with one pointer; done says whether it was a click.
  function drag(e, moved, done) {
    let id = -1, startX = 0, far = false;
    const x = ev => ev.clientX - e.getBoundingClientRect().left;
    e.addEventListener("pointerdown", ev => {
      if (ev.button || id >= 0) return;
      id = ev.pointerId;
      startX = x(ev);
      far = false;
      try { e.setPointerCapture(id); } catch { /* a synthetic pointer has no capture */ }
      if (!done) moved(startX, true);
    });
    e.addEventListener("pointermove", ev => {
      if (ev.pointerId !== id) return;
      if (Math.abs(x(ev) - startX) > 4) far = true;
      if (far || !done) moved(x(ev), false, startX);
    });
    const up = ev => {
      if (ev.pointerId !== id) return;
      id = -1;
      if (done && ev.type === "pointerup" && !far) done(ev);
      else if (done) done(null);
    };
    e.addEventListener("pointerup", up);
    e.addEventListener("pointercancel", up);
  }
  let held = null;
  const pointers = new Map();
  let pinch = 0;
  overlay.addEventListener("pointerdown", e => { pointers.set(e.pointerId, e.clientX); });
  for (const kind of ["pointerup", "pointercancel"]) overlay.addEventListener(kind, e => { pointers.delete(e.pointerId); pinch = 0; });
  overlay.addEventListener("pointermove", e => {
    if (!pointers.has(e.pointerId)) return;
    pointers.set(e.pointerId, e.clientX);
    if (pointers.size !== 2) return;
    const [p, q] = [...pointers.values()], wide = Math.max(12, Math.abs(p - q));
    if (pinch) { zoom(pinch / wide, diagram.t((p + q) / 2 - overlay.getBoundingClientRect().left)); held = null; }
    pinch = wide;
  });
  drag(overlay, (x, first, start) => {
    if (pointers.size > 1) return;
    if (!held) held = { a: diagram.a, b: diagram.b };
    const by = (start - x) / diagram.plot * (held.b - held.a);
    diagram.view(held.a + by, held.b + by);
    tip.hidden = true;
    redraw();
  }, e => {
    held = null;
    if (!e) { save(); return; }
    const box = overlay.getBoundingClientRect(), hit = diagram.pick(e.clientX - box.left, e.clientY - box.top);
    const v = run.broken.findIndex(b => Math.abs(diagram.x(b.at) - (e.clientX - box.left)) < 4);
    if (v >= 0) { choose(v); return; }
    if (hit && hit.record >= 0) { picked = hit.record; if (!run.told(picked) && !everything && !search.value) { everything = true; refilter(); } go(run.at[picked], false, true); } else go(diagram.t(e.clientX - box.left));
  });
  overlay.addEventListener("pointermove", e => {
    if (held || e.pointerType === "touch") return;
    const box = overlay.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    hover = x >= diagram.gutter ? diagram.t(x) : undefined;
    const hit = x >= diagram.gutter ? diagram.pick(x, y) : null;
    if (hit && hit.lines.length) {
      tip.replaceChildren(...hit.lines.slice(0, 6).map(l => el("div", {}, l)));
      tip.hidden = false;
      const w = tip.offsetWidth;
      tip.style.left = Math.max(4, Math.min(stage.clientWidth - w - 4, x + 14)) + "px";
      tip.style.top = y + 18 + stage.offsetTop - stage.scrollTop + "px";
    } else tip.hidden = true;
    ask();
  });
  overlay.addEventListener("pointerleave", () => { hover = undefined; tip.hidden = true; ask(); });
  overlay.addEventListener("dblclick", e => zoom(.25, diagram.t(e.clientX - overlay.getBoundingClientRect().left)));
  overlay.addEventListener("wheel", e => {
    if (e.ctrlKey || e.metaKey) zoom(Math.exp(e.deltaY * .01), diagram.t(e.clientX - overlay.getBoundingClientRect().left));
    else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) { const by = (e.deltaX || e.deltaY) * diagram.step; diagram.view(diagram.a + by, diagram.b + by); redraw(); save(); } else return;
    e.preventDefault();
  }, { passive: false });

  function key(e) {
    if (!root.isConnected || root.hidden || e.ctrlKey || e.metaKey || e.altKey || vigil.typing(e) || document.querySelector("dialog[open]")) return;
    const does = {
      ArrowRight: () => stepRecord(e.shiftKey ? 10 : 1), ArrowLeft: () => stepRecord(e.shiftKey ? -10 : -1),
      ".": () => go(now + diagram.step * 4), ",": () => go(now - diagram.step * 4),
      v: () => jump(run.broken.map(b => b.at), 1), V: () => jump(run.broken.map(b => b.at), -1),
      f: () => jump(run.marks.map(m => m.at), 1), F: () => jump(run.marks.map(m => m.at), -1),
      "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), "0": () => { diagram.view(0, run.end); redraw(); save(); },
      Home: () => go(0, true), End: () => go(run.end, true), " ": toggle, a: () => { everything = !everything; refilter(); },
      "/": () => search.focus(), l: () => document.getElementById("link").click(),
    }[e.key];
    if (does) { does(); e.preventDefault(); return; }
    const n = "1234567".indexOf(e.key);
    if (n >= 0 && n < run.groups.length) { diagram.show.groups[n] = !diagram.show.groups[n]; refilter(); }
  }
  document.addEventListener("keydown", key);

  // ---- the link ---------------------------------------------------------
  let saving = 0;
  function save(atOnce) {
    const write = () => {
      saving = 0;
      if (!root.isConnected || root.hidden) return;
      const p = [];
      if (options.name !== undefined) p.push("run=" + encodeURIComponent(options.name));
      p.push("t=" + spacetime.seconds(now, 1e3).replace(/\.?0+$/, "") + "s");
      if (diagram.a > 0 || diagram.b < run.end) p.push("view=" + spacetime.seconds(diagram.a, 1e3) + "s.." + spacetime.seconds(diagram.b, 1e3) + "s");
      if (search.value.trim()) p.push("q=" + encodeURIComponent(search.value.trim()));
      try { history.replaceState(null, "", "#" + p.join("&")); } catch { /* too often for this browser: the next one */ }
    };
    if (atOnce) { clearTimeout(saving); write(); } else if (!saving) saving = setTimeout(write, 300);
  }
  function follow() {
    const p = new URLSearchParams(location.hash.slice(1));
    const t = spacetime.moment(p.get("t"));
    const view = (p.get("view") || "").split("..").map(spacetime.moment);
    if (view.length === 2 && view[0] < view[1]) { diagram.view(view[0], view[1]); wantDraw = true; }
    if (p.has("q") && p.get("q") !== search.value) { search.value = p.get("q"); refilter(); }
    if (t !== undefined) go(t, true);
    return t !== undefined;
  }

  // ---- together ---------------------------------------------------------
  const title = el("div", { class: "title" },
    options.back ? el("a", { href: "#", onclick: options.back }, "‹ all scenarios") : null,
    el("h1", {}, run.id === run.name || !run.id ? run.name : run.id + " " + run.name.replace(/\/[^/]*$/, m => run.id.endsWith(m) ? "" : m)),
    run.title ? el("p", { class: "dim" }, run.title, run.story ? el("details", {}, el("summary", {}, "the story"), el("p", {}, run.story)) : null) : null,
    el("p", { class: "dim meta" }, [run.source || (run.design && "design " + run.design), run.source ? "" : "seed " + run.seed, run.events ? run.events.toLocaleString("en") + " events" : "", run.n.toLocaleString("en") + " records over " + spacetime.span(run.end),
      run.reap ? "reap timeout " + spacetime.span(run.reap) + ", grace " + spacetime.span(run.grace) : "", run.hash ? "hash " + run.hash : ""].filter(x => x).join(" · ")),
    run.left ? el("p", { class: "wrong" }, run.left.toLocaleString("en") + " more records did not fit: the end of the run is not shown.") : null,
    ...(run.Notes || []).map(n => el("p", { class: "dim" }, n)));
  root.append(title, banner,
    el("section", { class: "card diagram" }, tools, stage, tip, el("div", { class: "sliding" }, slider), el("div", { class: "strip" }, strip), filters),
    el("div", { class: "below" },
      el("section", { class: "card", id: "state" }, stateHead, facts, el("div", { class: "scroll" }, table), rows.length > mostRows ? el("p", { class: "dim" }, rows.length - mostRows + " more lanes are in the diagram only.") : null),
      el("section", { class: "card" }, el("div", { class: "listhead" }, el("h2", {}, "Records"), mode, count), list)));
  const api = { run, diagram, go, choose, frames: 0, get now() { return now; }, get records() { return index.length; }, refilter, redraw, search };
  tellBanner();
  // A log may begin late: the hours before it are empty.
  if (run.n && run.at[0] > .2 * run.end) diagram.view(run.at[0] - .02 * (run.end - run.at[0]), run.end);
  refilter();
  drawStrip();
  if (!follow()) go(chosen >= 0 ? run.broken[chosen].at : run.end, true);
  const again = () => { if (root.isConnected && !root.hidden) { diagram.layout(); diagram.hatches = null; drawStrip(); redraw(); } };
  addEventListener("resize", again);
  document.addEventListener("vigil:theme", again);
  const hash = () => { if (root.isConnected && !root.hidden) follow(); };
  addEventListener("hashchange", hash);
  api.close = () => {
    document.removeEventListener("keydown", key);
    document.removeEventListener("vigil:theme", again);
    removeEventListener("resize", again);
    removeEventListener("hashchange", hash);
    playing = 0;
    root.replaceChildren();
  };
  return spacetime.shown = api;
};

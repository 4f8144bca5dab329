// The overview: asks /status, draws it, asks again.
(() => {
  const each = 2000;        // milliseconds from one answer to the next question
  const patience = 5000;    // how long an answer may take
  const page = 200;         // instances that are asked for at once
  const $ = id => document.getElementById(id);
  let paused = false, timer = 0, last = null, lastAt = 0, pages = 1, asking = false;

  const span = s => s < 100 ? s.toFixed(1) + " s" : s < 7200 ? Math.round(s) + " s" : (s / 3600).toFixed(1) + " h";
  const size = b => {
    for (const [unit, n] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) if (b >= n) return (b / n).toFixed(1).replace(/\.0$/, "") + " " + unit;
    return b + " B";
  };
  const many = (n, one, more) => n.toLocaleString("en") + " " + (n === 1 ? one : more || one + "s");

  // Everything that the server says goes in as text, never as markup.
  function element(tag, text, name) {
    const e = document.createElement(tag);
    if (text !== undefined && text !== null) e.textContent = text;
    if (name) e.className = name;
    return e;
  }
  function facts(id, rows) {
    $(id).replaceChildren(...rows.flatMap(([name, value, loud]) => [element("dt", name), element("dd", value, loud ? "loud" : "")]));
  }
  function table(id, head, rows, none) {
    const top = element("tr");
    for (const h of head) top.append(element("th", h.replace(/^>/, ""), h[0] === ">" ? "n" : ""));
    const body = rows.map(cells => {
      const tr = element("tr");
      cells.forEach((c, i) => {
        if (c instanceof Node) tr.append(c); else tr.append(element("td", c, head[i][0] === ">" ? "n" : ""));
      });
      return tr;
    });
    if (!body.length) {
      const tr = element("tr"), td = element("td", none, "dim");
      td.colSpan = head.length;
      tr.append(td);
      body.push(tr);
    }
    $(id).replaceChildren(top, ...body);
  }
  function chip(text, kind) {
    const td = element("td");
    td.append(element("span", text, "chip " + kind));
    return td;
  }
  function identity(id) {
    const td = element("td"), b = element("button", id, "small mono");
    b.dataset.copy = id;
    b.title = "copy";
    td.append(b);
    return td;
  }
  function silence(age, window) {
    const td = element("td", null, "silence num"), share = window > 0 ? age / window : 0;
    const bar = element("span", null, "bar " + (share > 0.75 ? "bad" : share > 0.5 ? "warn" : "good")), fill = element("i");
    fill.style.width = Math.min(100, 100 * share) + "%";
    bar.append(fill);
    td.append(bar, span(age) + (window > 0 ? " of " + span(window) : ""));
    return td;
  }

  function verdict(s) {
    const l = s.liveness, r = s.releases, at = $("verdict");
    const all = s.server_driven.total + s.engine_driven.total;
    const words = [], serious = [];
    if (s.state !== "serving") serious.push("The server is stopping.");
    if (r.stuck) serious.push(many(r.stuck, "release is", "releases are") + " stuck and hold" + (r.stuck === 1 ? "s " : " ") + size(r.stuck_bytes) + ": closing that memory has not returned. Others are served on; a restart of the server frees it.");
    if (r.lost) serious.push(many(r.lost, "context was", "contexts were") + " lost to a failed close: " + size(r.lost_bytes) + " until the server restarts.");
    if (s.server.time_scale > 1 || s.server.test_hooks) serious.push("TEST: time runs " + s.server.time_scale + " times as fast" + (s.server.test_hooks ? ", and hooks can make memory fail." : "."));
    words.push(many(all, "context") + ", " + size(s.memory.serving_bytes) + ".");
    if (!l.enabled) words.push("Nobody is reaped: the reap timeout is 0.");
    else if (all) words.push("The longest silent has used " + Math.round(100 * l.last_seen_window_share_max) + "% of its window.");
    if (!serious.length) words.unshift("All is well.");
    at.textContent = serious.concat(words).join(" ");
    at.className = "banner " + (s.state !== "serving" || r.stuck || r.lost ? "bad" : serious.length ? "warn" : "good");
  }

  function draw(s) {
    const l = s.liveness, m = s.memory, r = s.releases, p = s.pools, st = s.store;
    $("about").textContent = s.server.version + ", " + s.server.design + " design, " + s.server.backend + ", " + s.server.bind.join(" ") + (s.server.curve ? " (curve)" : "") + ", pid " + s.server.pid + ", up " + span(s.server.uptime_seconds);
    verdict(s);
    const reaps = l.reaps.window + " by the window, " + l.reaps.grace + " by the grace, " + l.reaps.proof + " by proof of death";
    facts("liveness", [
      ["window", l.enabled ? span(l.reap_timeout_seconds) + " after a ping, " + span(l.registration_grace_seconds) + " before the first" : "off"],
      ["longest silent", span(l.last_seen_age_seconds_max)],
      ["reaped", reaps], ["scans", l.scans.toLocaleString("en")],
    ]);
    facts("memory", [
      ["contexts", size(m.serving_bytes)], ["mapped", size(m.mapped_bytes) + " in " + many(m.mappings, "mapping")],
      ["operations", m.opening + " opening, " + m.closing + " closing, " + m.copying + " copying"],
      ["releases", r.in_progress + " under way (" + size(r.bytes) + ")"],
      ["stuck", r.stuck + " (" + size(r.stuck_bytes) + ")", r.stuck > 0], ["failed operations", m.failed_operations.toLocaleString("en"), m.failed_operations > 0],
    ]);
    const load = (name, x) => [name, x.busy + " of " + x.bound + " busy" + (x.waiting ? ", " + x.waiting + " wait" : "")];
    facts("work", [
      load("main loop", p.main), load("normal pool", p.normal), load("affinity pool", p.affinity),
      ["store", many(st.chunks, "chunk") + ", " + size(st.bytes) + " of " + size(st.budget_bytes)],
      ["transfers", st.stored.toLocaleString("en") + " stored, " + st.retrieved.toLocaleString("en") + " retrieved, " + st.missed.toLocaleString("en") + " missed"],
    ]);
    const odd = [...Object.entries(s.refusals), ...Object.entries(s.messages_dropped)].filter(([, n]) => n > 0);
    facts("refused", odd.length ? odd.map(([why, n]) => [why, n.toLocaleString("en")]) : [["nothing", ""]]);
    $("releasing").hidden = !r.list.length;
    table("releases", ["instance", ">incarnation", ">bytes", "by", ">for", "state"], r.list.map(x =>
      [identity(x.instance), x.incarnation, size(x.bytes), x.by, span(x.for_seconds), x.stuck ? chip("stuck", "bad") : chip(x.closing ? "closing" : "waits", "info")]), "none");
    instances(s);
    table("reaps", ["when", "instance", "context", ">incarnation", "why", ">times"], l.recent_reaps.map(x =>
      [new Date(x.at).toLocaleTimeString(), identity(x.instance), x.context, x.incarnation,
        x.reason === "proof" ? "proof of death: its process has ended" : "silent for " + span(x.silent_seconds) + ", " + (x.reason === "grace" ? "the grace" : "the window") + " is " + span(x.window_seconds), x.times || 1]), "nobody was reaped");
  }

  function instances(s) {
    const word = $("find").value.trim().toLowerCase(), silentOnly = $("silent").checked, rows = [];
    for (const [kind, list] of [["server-driven", s.server_driven], ["engine-driven", s.engine_driven]]) for (const i of list.instances) {
      if (word && !i.instance.includes(word) && !i.model.toLowerCase().includes(word)) continue;
      if (silentOnly && !(i.window_seconds > 0 && i.last_seen_age_seconds > i.window_seconds / 2)) continue;
      const progress = i.has_transferred ? span(i.progress_age_seconds) + " ago" : "none yet";
      rows.push([identity(i.instance), kind, i.model + " x" + i.world_size, size(i.bytes), silence(i.last_seen_age_seconds, i.window_seconds), i.has_liveness_signal ? "yes" : "not yet", progress, i.times_reaped ? chip(i.times_reaped + " times", "warn") : ""]);
    }
    const all = s.server_driven.total + s.engine_driven.total, shown = s.server_driven.instances.length + s.engine_driven.instances.length;
    $("count").textContent = rows.length === all ? all : rows.length + " shown of " + shown + " loaded, " + all + " in all";
    $("more").hidden = shown >= all || shown >= page * 10;
    table("instances", ["instance", "context", "model", ">bytes", "silent", "pinged", "last transfer", "reaped before"], rows, all ? "none of the loaded instances is like that" : "no worker is registered");
  }

  async function ask() {
    if (asking) return;
    asking = true;
    clearTimeout(timer);
    try {
      const answer = await fetch("/status?limit=" + Math.min(1000, page * pages), { signal: AbortSignal.timeout(patience), cache: "no-store" });
      if (!answer.ok) throw new Error((await answer.text()).slice(0, 200));
      last = await answer.json();
      lastAt = Date.now();
      draw(last);
    } catch (problem) {
      const at = $("verdict");
      at.className = "banner bad";
      at.textContent = "The server does not answer: " + problem.message + (last ? " What is below is of " + new Date(lastAt).toLocaleTimeString() + "." : "");
    }
    asking = false;
    if (!paused && !document.hidden) timer = setTimeout(ask, each);
  }
  function pause() {
    paused = !paused;
    $("pause").textContent = paused ? "go on" : "pause";
    $("pause").classList.toggle("on", paused);
    if (paused) clearTimeout(timer); else ask();
  }
  setInterval(() => { $("fresh").textContent = lastAt ? "as of " + Math.round((Date.now() - lastAt) / 1000) + " s ago" : ""; }, 500);
  $("pause").addEventListener("click", pause);
  $("find").addEventListener("input", () => last && instances(last));
  $("silent").addEventListener("change", () => last && instances(last));
  $("more").addEventListener("click", () => { pages++; ask(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !paused) ask(); });
  document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey || vigil.typing(e)) return;
    if (e.key === "r" || e.key === "R") ask();
    else if (e.key === "p" || e.key === "P") pause();
    else if (e.key === "/") { $("find").focus(); e.preventDefault(); }
  });
  ask();
})();

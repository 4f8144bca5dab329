// Draws the diagram on a canvas. What is drawn of a long run is bounded by the
// pixels there are, not by the records: a column of pixels that has its line is
// not drawn again.
spacetime.Diagram = class {
  constructor(canvas, overlay, run) {
    this.canvas = canvas;
    this.overlay = overlay;
    this.run = run;
    this.a = 0;
    this.b = run.end;
    this.show = { groups: run.groups.map(() => true), lanes: run.lanes.map(() => true), matches: null };
    this.layout();
  }

  // Where everything stands; it depends on the width and on what is shown.
  layout() {
    const run = this.run;
    const width = this.canvas.parentElement.clientWidth || 800;
    this.w = width;
    this.narrow = width < 640;
    this.gutter = this.narrow ? 52 : 116;
    this.right = 10;
    this.axis = 20;
    this.flags = 30;
    const lanes = run.order.filter(i => this.show.lanes[i]);
    const room = Math.max(220, Math.min(480, innerHeight * 0.52)) - this.axis - this.flags - 52;
    const rows = lanes.reduce((sum, i) => sum + Math.min(run.rows[i], 4) - 1, 0);
    const h = Math.min(84, Math.max(34, (room - rows * 10) / Math.max(1, lanes.length)));
    let y = this.axis + this.flags;
    this.serverTop = y;
    this.serverLine = y + 44;
    y += 56;
    this.place = new Map();
    for (const i of lanes) {
      const tall = h + (Math.min(run.rows[i], 4) - 1) * 10;
      this.place.set(i, { top: y, h: tall, line: y + 9 });
      y += tall;
    }
    this.h = y + 4;
    const scale = devicePixelRatio || 1;
    for (const c of [this.canvas, this.overlay]) {
      c.width = Math.round(this.w * scale);
      c.height = Math.round(this.h * scale);
      c.style.height = this.h + "px";
      c.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
    this.scale = scale;
  }

  get plot() { return this.w - this.gutter - this.right; }
  x(t) { return this.gutter + (t - this.a) / (this.b - this.a) * this.plot; }
  t(x) { return this.a + (x - this.gutter) / this.plot * (this.b - this.a); }
  // The moments of one pixel.
  get step() { return (this.b - this.a) / this.plot; }

  zoom(by, around) {
    const run = this.run;
    const at = around === undefined ? (this.a + this.b) / 2 : around;
    const span = Math.min(run.end, Math.max(2e3, (this.b - this.a) * by));
    const share = (at - this.a) / (this.b - this.a);
    this.view(at - share * span, at - share * span + span);
  }

  view(a, b) {
    const span = Math.min(this.run.end, Math.max(2e3, b - a));
    this.a = Math.max(0, Math.min(a, this.run.end - span));
    this.b = this.a + span;
  }

  hatch(g, colour, gap) {
    const key = colour + gap + this.scale;
    this.hatches = this.hatches || new Map();
    let p = this.hatches.get(key);
    if (!p) {
      const c = document.createElement("canvas");
      const n = gap * this.scale;
      c.width = c.height = n;
      const k = c.getContext("2d");
      k.strokeStyle = colour;
      k.lineWidth = 1.4 * this.scale;
      k.beginPath();
      for (const d of [-n, 0, n]) { k.moveTo(d - 1, n + 1); k.lineTo(d + n + 1, -1); }
      k.stroke();
      p = g.createPattern(c, "repeat");
      p.setTransform(new DOMMatrix().scale(1 / this.scale));
      this.hatches.set(key, p);
    }
    return p;
  }

  draw() {
    const g = this.canvas.getContext("2d"), run = this.run, ink = vigil.ink;
    g.clearRect(0, 0, this.w, this.h);
    g.textBaseline = "middle";
    this.font = getComputedStyle(document.body).fontFamily;
    this.labels = [];
    this.grid(g);
    g.save();
    g.beginPath();
    g.rect(this.gutter, 0, this.w - this.gutter, this.h);
    g.clip();
    for (const b of run.bands) this.band(g, b);
    this.heldBytes(g);
    for (const [i, p] of this.place) { this.process(g, run.lanes[i], p.line); this.context(g, i, p); }
    this.process(g, run.lanes[0], this.serverLine);
    if (this.show.groups[1]) this.scans(g);
    this.drawn = this.messages(g);
    this.records(g);
    this.marks(g);
    this.violations(g);
    g.restore();
    this.names(g);
  }

  text(g, words, x, y, colour, size, weight) {
    g.font = (weight || 400) + " " + (size || 11) + "px " + this.font;
    g.fillStyle = colour;
    g.fillText(words, x, y);
  }

  grid(g) {
    const ink = vigil.ink, span = this.b - this.a;
    const wanted = span / Math.max(2, this.plot / (this.narrow ? 80 : 110));
    const ten = 10 ** Math.floor(Math.log10(wanted));
    let step = [1, 2, 5, 10].map(m => m * ten).find(s => s >= wanted);
    if (wanted > 10e9) step = [15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 36000, 86400].map(s => s * 1e9).find(s => s >= wanted) || step;
    g.strokeStyle = ink("line");
    g.lineWidth = 1;
    g.textAlign = "center";
    for (let t = Math.ceil(this.a / step) * step; t <= this.b; t += step) {
      const x = Math.round(this.x(t)) + .5;
      g.globalAlpha = .55;
      g.beginPath();
      g.moveTo(x, this.axis);
      g.lineTo(x, this.h);
      g.stroke();
      g.globalAlpha = 1;
      if (x > this.gutter + 16 && x < this.w - 16) this.text(g, spacetime.seconds(t, step) + " s", x, 9, ink("dim"), 10.5);
    }
    g.textAlign = "left";
    // Lanes are told apart by every other one having a ground of its own.
    let odd = false;
    for (const p of this.place.values()) {
      if (odd = !odd) {
        g.globalAlpha = .5;
        g.fillStyle = ink("raised");
        g.fillRect(0, p.top, this.w, p.h);
        g.globalAlpha = 1;
      }
    }
  }

  names(g) {
    const run = this.run, ink = vigil.ink;
    const name = (l, y, hot) => {
      let words = this.narrow ? l.name.replace(" life ", "·").replace("instance ", "") : l.name;
      if (this.narrow && words.length > 6) words = "…" + words.slice(-5);
      else if (words.length > 13) words = words.slice(0, 5) + "…" + words.slice(-6);
      this.text(g, words, 8, y, hot ? ink("bad") : ink("ink"), 12.5, 600);
    };
    const hot = new Set(run.broken.flatMap(v => v.lanes));
    name(run.lanes[0], this.serverLine - 8, hot.has(0));
    if (run.mostHeld) this.text(g, (this.narrow ? "" : "up to ") + spacetime.bytes(run.mostHeld), 8, this.serverLine - 26, ink("dim"), this.narrow ? 9 : 10.5);
    for (const [i, p] of this.place) {
      name(run.lanes[i], p.line + 3, hot.has(i));
      if (!this.narrow && p.h >= 44) this.text(g, "context", 8, p.line + 17, ink("dim"), 10.5);
      if (!this.narrow && p.h >= 58) this.text(g, "lease", 8, p.top + p.h - 10, ink("dim"), 10.5);
    }
  }

  band(g, b) {
    const ink = vigil.ink;
    const x = Math.max(this.gutter - 2, this.x(b.from)), to = Math.min(this.w + 2, this.x(b.end));
    if (to < this.gutter || x > this.w) return;
    let top, h;
    if (b.lane === 0) { top = this.serverTop; h = 54; } else if (b.lane > 0) {
      const p = this.place.get(b.lane);
      if (!p) return;
      top = p.top; h = p.h;
    } else { top = this.serverTop; h = this.h - this.serverTop; }
    const w = Math.max(1.5, to - x);
    const colour = ink({ frozen: "accent", cut: "warn", down: "bad", fault: "warn" }[b.kind] || "dim");
    g.globalAlpha = b.kind === "fault" ? .10 : .13;
    g.fillStyle = colour;
    g.fillRect(x, top, w, h - 1);
    g.globalAlpha = .4;
    if (b.kind !== "fault") {
      g.fillStyle = this.hatch(g, colour, b.kind === "cut" ? 7 : 10);
      g.fillRect(x, top, w, h - 1);
    }
    g.globalAlpha = 1;
    this.label(g, b.label, x + 4, b.lane === 0 ? top + 8 : top + 4 + 18, w - 6, colour);
  }

  // A label where there is room for it, and where none stands already.
  label(g, words, x, y, room, colour) {
    g.font = "600 10.5px " + this.font;
    const w = g.measureText(words).width;
    if (w > room || this.labels.some(l => Math.abs(l.y - y) < 11 && x < l.x + l.w + 4 && l.x < x + w + 4)) return false;
    this.labels.push({ x, y, w });
    g.globalAlpha = .78;
    g.fillStyle = vigil.ink("panel");
    g.fillRect(x - 2, y - 7, w + 4, 14);
    g.globalAlpha = 1;
    this.text(g, words, x, y, colour, 10.5, 600);
    return true;
  }

  heldBytes(g) {
    const run = this.run;
    if (!run.mostHeld) return;
    const base = this.serverLine - 3, tall = 30;
    let i = Math.max(0, spacetime.upTo(run.heldAt, this.a));
    g.fillStyle = vigil.ink("accent");
    g.globalAlpha = .22;
    let column = -1;
    for (; i < run.held.length && run.heldAt[i] <= this.b; i++) {
      const x = Math.max(this.gutter, this.x(run.heldAt[i]));
      const to = Math.min(this.w, i + 1 < run.held.length ? this.x(run.heldAt[i + 1]) : this.x(run.end));
      if (to - x < .5 && Math.floor(x) === column) continue;
      column = Math.floor(x);
      const h = run.held[i] / run.mostHeld * tall;
      g.fillRect(x, base - h, Math.max(.6, to - x), h);
    }
    g.globalAlpha = 1;
  }

  process(g, lane, y) {
    const ink = vigil.ink, run = this.run, list = lane.process;
    const draw = (from, to, state) => {
      const x = Math.max(this.gutter - 1, this.x(from)), end = Math.min(this.w + 1, this.x(to));
      if (end < this.gutter || x > this.w || state === 0) return;
      g.beginPath();
      g.setLineDash(state === 2 ? [4, 4] : state >= 3 ? [1, 5] : []);
      g.lineWidth = state === 1 ? 2 : 1.4;
      g.strokeStyle = state === 2 ? ink("accent") : state >= 3 ? ink("dim") : ink("ink");
      g.moveTo(x, y);
      g.lineTo(Math.max(end, x + 1), y);
      g.stroke();
      g.setLineDash([]);
      if (state >= 3) {
        const k = this.x(from);
        g.lineWidth = 2;
        g.strokeStyle = state === 3 ? ink("bad") : ink("dim");
        g.beginPath();
        if (state === 3) { g.moveTo(k - 5, y - 5); g.lineTo(k + 5, y + 5); g.moveTo(k + 5, y - 5); g.lineTo(k - 5, y + 5); } else { g.moveTo(k, y - 5); g.lineTo(k, y + 5); }
        g.stroke();
        if (lane !== run.lanes[0]) this.label(g, state === 3 ? "killed" : "left", k + 8, y + 1, 60, state === 3 ? ink("bad") : ink("dim"));
      }
    };
    if (!list.length) draw(lane.began < 0 ? 0 : lane.began, run.end, 1); // a log says nothing of processes
    for (let i = 0; i < list.length; i++) {
      const dead = list[i][1] >= 3;
      draw(list[i][0], i + 1 < list.length ? list[i + 1][0] : dead ? Math.min(run.end, list[i][0] + 14 * this.step) : run.end, list[i][1]);
    }
  }

  context(g, i, p) {
    const run = this.run, ink = vigil.ink, rows = Math.min(run.rows[i], 4);
    const small = p.h < 34.5;
    const top = p.line + 7, lease = small ? 0 : Math.min(20, Math.max(7, p.h * .26));
    const tall = Math.max(4, (p.h - (p.h < 44 ? 13 : 20) - lease) / rows - 2);
    for (const b of run.barsOf[i]) {
      if (b.open > this.b || b.end < this.a) continue;
      const y = top + b.row * (tall + 2), h = b.rope ? Math.max(3, tall / 2) : tall;
      const seg = (from, to, how) => {
        if (from < 0 || to <= from) return;
        const x = Math.max(this.gutter - 2, this.x(from)), end = Math.min(this.w + 2, this.x(to));
        if (end < this.gutter || x > this.w) return;
        how(x, Math.max(1.2, end - x));
      };
      const colour = b.rope ? ink("warn") : b.kind === "engine-driven" ? ink("good") : ink("accent");
      const serves = b.serving >= 0 ? b.serving : b.end, gone = b.removed >= 0 ? b.removed : b.end;
      seg(b.open, Math.min(serves, b.end), (x, w) => { g.strokeStyle = colour; g.lineWidth = 1; g.setLineDash([2, 2]); g.strokeRect(x + .5, y + .5, w, h - 1); g.setLineDash([]); });
      if (b.serving >= 0) seg(b.serving, Math.min(gone, b.end), (x, w) => {
        g.globalAlpha = .3; g.fillStyle = colour; g.fillRect(x, y, w, h);
        g.globalAlpha = 1; g.strokeStyle = colour; g.lineWidth = 1; g.strokeRect(x + .5, y + .5, w - 1, h - 1);
        if (h >= 11 && !b.rope) this.inside(g, b.kind + " context, incarnation " + b.incarnation + (b.bytes ? ", " + spacetime.bytes(b.bytes) : ""), x + 4, y + h / 2 + .5, w - 8, b.bytes ? spacetime.bytes(b.bytes) : "#" + b.incarnation);
      });
      if (b.removed >= 0) seg(b.removed, b.end, (x, w) => {
        const late = b.stuck >= 0 || b.hung >= 0;
        g.fillStyle = this.hatch(g, late ? ink("bad") : ink("warn"), 5);
        g.fillRect(x, y, Math.max(w, 2), h);
        g.strokeStyle = late ? ink("bad") : ink("warn");
        g.strokeRect(x + .5, y + .5, Math.max(w, 2), h - 1);
        if (h >= 11) this.label(g, late ? "release hangs, " + spacetime.bytes(b.bytes) + " held" : "in release", x + 5, y + h / 2 + .5, w - 8, late ? ink("bad") : ink("warn"));
      });
      if (b.removed >= 0 && b.decided >= 0) { // the reaper took it
        const x = this.x(b.removed);
        if (x >= this.gutter && x <= this.w) {
          g.fillStyle = ink("bad");
          g.fillRect(x - 1, y - 3, 2, h + 6);
          this.label(g, "reaped", x + 5, y + h / 2 + .5, 200, ink("bad"));
        }
      }
      if (lease && !b.rope && b.row === 0 && run.reap > 0) this.lease(g, b, p.top + p.h - 3, lease);
    }
  }

  inside(g, words, x, y, room, shorter) {
    g.font = "500 10.5px " + this.font;
    for (const w of [words, shorter]) if (g.measureText(w).width <= room) { this.text(g, w, x, y, vigil.ink("ink"), 10.5, 500); this.labels.push({ x, y, w: g.measureText(w).width }); return; }
  }

  // What is left of the lease: full at each stamp, and at the ground when the
  // window is over. Each column of pixels shows the least that was left in it.
  lease(g, b, base, tall) {
    const run = this.run, ink = vigil.ink, stamps = b.stamps;
    if (!stamps.length) return;
    const from = Math.max(this.gutter, Math.floor(this.x(stamps[0])));
    const to = Math.min(this.w - this.right, Math.ceil(this.x(Math.min(b.removed >= 0 ? b.removed : b.end, run.end))));
    if (to <= from) return;
    let k = Math.max(0, spacetime.upTo(stamps, this.t(from)));
    let colour = "", began = from, high = -1;
    const flush = x => { if (high >= 0 && x > began) g.fillRect(began, base - high, x - began, high); };
    g.globalAlpha = .6;
    for (let x = from; x < to; x++) {
      const t0 = Math.max(stamps[0], this.t(x)), t1 = this.t(x + 1);
      // The longest silence that ends in, or reaches over, this column.
      let least = 1;
      const at = t => { const w = run.window(b, t); return Math.max(0, 1 - (t - stamps[k]) / w); };
      while (k + 1 < stamps.length && stamps[k + 1] <= t1) {
        if (stamps[k + 1] > t0) least = Math.min(least, at(stamps[k + 1]));
        k++;
      }
      least = Math.min(least, at(Math.min(t1, b.removed >= 0 ? b.removed : t1)));
      const c = least < .1 ? "bad" : least < .4 ? "warn" : "good";
      const h = Math.max(1, Math.round(least * tall * 2) / 2);
      if (c === colour && h === high) continue;
      flush(x);
      if (c !== colour) g.fillStyle = ink(colour = c);
      began = x;
      high = h;
    }
    flush(to);
    g.globalAlpha = .5;
    g.strokeStyle = ink("line");
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(from, base + .5);
    g.lineTo(to, base + .5);
    g.stroke();
    g.globalAlpha = 1;
  }

  scans(g) {
    const run = this.run;
    g.fillStyle = vigil.ink("dim");
    let column = -1;
    for (let i = Math.max(0, spacetime.upTo(run.scanAt, this.a)); i < run.scanAt.length && run.scanAt[i] <= this.b; i++) {
      const x = Math.round(this.x(run.scanAt[i]));
      if (x === column || x < this.gutter) continue;
      column = x;
      g.fillRect(x, this.serverLine + 2, 1, 5);
    }
  }

  messages(g) {
    const run = this.run, ink = vigil.ink;
    const wanted = [this.show.groups[4], this.show.groups[3], this.show.groups[3], this.show.groups[5]];
    const inks = [ink("dim"), ink("accent"), ink("accent"), ink("good")];
    const low = (() => { let a = 0, b = run.m; while (a < b) { const m = (a + b) >> 1; if (run.latest[m] < this.a) a = m + 1; else b = m; } return a; })();
    // What goes well is a stub at each end: the columns of pixels that have one,
    // of each lane and class, are filled together.
    const wide = Math.ceil(this.plot) + 2, stubs = new Map();
    const stub = (lane, kind, x) => {
      const key = lane * 16 + kind, c = (x - this.gutter) | 0;
      let has = stubs.get(key);
      if (!has) stubs.set(key, has = new Uint8Array(wide));
      if (c < 0 || c >= wide || has[c]) return false;
      return has[c] = 1;
    };
    // How many stand in view decides how much of each is drawn.
    let high = low;
    { let a = low, b = run.m; while (a < b) { const m = (a + b) >> 1; if (run.from[m] <= this.b) a = m + 1; else b = m; } high = a; }
    const few = high - low <= 160;
    // Where many went wrong, or took long, their lines would hide the lanes.
    let odds = 0, longs = 0;
    for (let i = low; i < high; i++) {
      if (run.fate[i] >= 2 || run.reached[i] < 0 && run.ended[i] >= 0) odds++;
      else if (Math.max(run.reached[i] - run.sent[i], run.ended[i] - run.handled[i]) > 12 * this.step) longs++;
    }
    const crowded = odds > 60, faint = Math.max(.1, Math.min(.6, 40 / longs));
    let drawn = 0;
    for (let i = low; i < high; i++) {
      if (run.to[i] < this.a || !wanted[run.cls[i]]) continue;
      const p = this.place.get(run.lane[i]);
      if (!p) continue;
      const fate = run.fate[i], sent = run.sent[i], reached = run.reached[i], handled = run.handled[i], ended = run.ended[i];
      const x0 = this.x(run.from[i]), lost = fate === 3 || reached < 0 && ended >= 0;
      const odd = fate >= 2 || lost; // 2 failed, 3 lost, 4 never answered
      const long = Math.max(reached - sent, ended - handled, handled - reached) > 4 * this.step && few || Math.max(reached - sent, ended - handled) > 12 * this.step;
      const colour = odd ? ink("bad") : inks[run.cls[i]];
      if (!odd && !long && !few) { // one of many that went well: a stub at each end
        if (stub(run.lane[i], run.cls[i], x0)) drawn++;
        if (reached >= 0) stub(0, run.cls[i], this.x(reached));
        continue;
      }
      if (odd && crowded) { // a stub, and a cross where there is room for one
        if (stub(run.lane[i], 8, x0)) drawn++;
        if (reached >= 0) stub(0, 8, this.x(reached));
        if (stub(run.lane[i], 9, this.gutter + Math.floor((x0 - this.gutter) / 7))) {
          g.strokeStyle = ink("bad");
          g.globalAlpha = .8;
          this.cross(g, x0, p.line);
        }
        continue;
      }
      drawn++;
      g.globalAlpha = odd ? .95 : few ? .85 : faint;
      g.strokeStyle = g.fillStyle = colour;
      g.lineWidth = odd ? 1.4 : 1;
      if (lost) {
        this.lost(g, x0, p.line, this.serverLine);
        continue;
      }
      if (sent >= 0 && reached >= 0) this.arrow(g, x0, p.line, this.x(reached), this.serverLine, few);
      else if (reached >= 0) { g.setLineDash([2, 3]); this.arrow(g, this.x(reached), p.line, this.x(reached), this.serverLine, few); g.setLineDash([]); }
      else this.lost(g, x0, p.line, p.line - 14);
      if (reached >= 0 && handled >= 0 && handled - reached > 2 * this.step) { // it waited at the host
        g.lineWidth = 3;
        g.beginPath();
        g.moveTo(this.x(reached), this.serverLine - 2);
        g.lineTo(this.x(handled), this.serverLine - 2);
        g.stroke();
        g.lineWidth = 1;
      }
      const back = handled >= 0 ? handled : reached;
      if (fate === 4) {
        g.lineWidth = 1.4;
        g.beginPath();
        g.arc(this.x(back), this.serverLine, 4, 0, 7);
        g.stroke();
        if (odds < 12) this.label(g, "no answer", this.x(back) + 8, this.serverLine + 10, 100, colour);
      }
      if (ended >= 0 && back >= 0) {
        if (fate === 2) { // given up, or refused
          g.setLineDash([3, 3]);
          this.arrow(g, this.x(back), this.serverLine, this.x(ended), p.line, few);
          g.setLineDash([]);
          this.cross(g, this.x(ended), p.line);
        } else this.arrow(g, this.x(back), this.serverLine, this.x(ended), p.line, few);
      }
      if (few && run.type[i] > 0 && high - low < 24) {
        g.globalAlpha = 1;
        this.label(g, run.types[run.type[i] - 1], Math.max(this.gutter + 4, x0 + 6), (p.line + this.serverLine) / 2 + (i % 3) * 12 - 12, 260, colour);
      }
    }
    g.globalAlpha = .6;
    for (const [key, has] of stubs) {
      const lane = key >> 4, kind = key & 15;
      if (kind === 9) continue;
      const h = kind === 8 ? 8 : lane ? 6 : 4, y = (lane ? this.place.get(lane).line : this.serverLine) - h;
      g.fillStyle = kind === 8 ? ink("bad") : inks[kind];
      for (let c = 0; c < wide; c++) {
        if (!has[c]) continue;
        const from = c;
        while (c + 1 < wide && has[c + 1]) c++;
        g.fillRect(this.gutter + from, y, c - from + 1, h);
      }
    }
    g.globalAlpha = 1;
    return drawn;
  }

  arrow(g, x0, y0, x1, y1, head) {
    g.beginPath();
    g.moveTo(x0, y0);
    g.lineTo(x1, y1);
    g.stroke();
    if (!head) return;
    const a = Math.atan2(y1 - y0, x1 - x0);
    g.beginPath();
    g.moveTo(x1, y1);
    g.lineTo(x1 - 7 * Math.cos(a - .35), y1 - 7 * Math.sin(a - .35));
    g.lineTo(x1 - 7 * Math.cos(a + .35), y1 - 7 * Math.sin(a + .35));
    g.fill();
  }

  lost(g, x, from, to) {
    const y = from + (to - from) * .45;
    g.setLineDash([3, 2]);
    g.beginPath();
    g.moveTo(x, from);
    g.lineTo(x, y);
    g.stroke();
    g.setLineDash([]);
    this.cross(g, x, y);
  }

  cross(g, x, y) {
    g.lineWidth = 1.6;
    g.beginPath();
    g.moveTo(x - 3.5, y - 3.5); g.lineTo(x + 3.5, y + 3.5);
    g.moveTo(x + 3.5, y - 3.5); g.lineTo(x - 3.5, y + 3.5);
    g.stroke();
  }

  // The records that are told, as dots on their lanes; matches of a search as
  // diamonds.
  records(g) {
    const run = this.run, ink = vigil.ink, found = this.show.matches;
    for (const [i, p] of this.place) {
      const list = found ? run.recordsOf[i] : run.toldOf[i];
      let k = Math.max(0, spacetime.upTo(list, this.a, r => run.at[r]));
      let column = -1, hit = -1;
      for (; k < list.length && run.at[list[k]] <= this.b; k++) {
        const r = list[k], x = this.x(run.at[r]), c = Math.floor(x / 2);
        if (found && found[r]) {
          if (c !== hit) {
            hit = c;
            g.fillStyle = ink("warn");
            g.beginPath();
            g.moveTo(x, p.line - 6); g.lineTo(x + 5, p.line); g.lineTo(x, p.line + 6); g.lineTo(x - 5, p.line);
            g.fill();
          }
          continue;
        }
        if (c === column || !run.told(r) || !this.show.groups[run.group(r)]) continue;
        column = c;
        g.fillStyle = run.wrong(r) ? ink("bad") : ink("ink");
        g.beginPath();
        g.arc(x, p.line, run.wrong(r) ? 4 : 2.6, 0, 7);
        g.fill();
      }
    }
  }

  // The steps of the story: flags above the lanes.
  marks(g) {
    const run = this.run, ink = vigil.ink, free = [-1e9, -1e9];
    let column = -1;
    if (!this.show.groups[0]) return;
    g.font = "600 10.5px " + this.font;
    for (const m of run.marks) {
      if (m.at < this.a || m.at > this.b) continue;
      const x = this.x(m.at), w = g.measureText(m.label).width;
      if (Math.floor(x) === column) continue;
      column = Math.floor(x);
      let row = free.findIndex(f => x - 5 > f);
      const roomy = row >= 0 && x + 7 + w <= this.w - 4;
      if (row < 0) row = 0;
      const y = this.axis + 7 + row * 13, p = this.place.get(m.lane), colour = m.hit ? ink("warn") : ink("dim");
      g.fillStyle = g.strokeStyle = colour;
      g.beginPath();
      g.moveTo(x - 4, y - 4); g.lineTo(x + 4, y - 4); g.lineTo(x, y + 4);
      g.fill();
      g.globalAlpha = .6;
      g.lineWidth = 1;
      g.setLineDash([2, 3]);
      g.beginPath();
      g.moveTo(x, y + 4);
      g.lineTo(x, p ? p.top + p.h : m.lane === 0 ? this.serverLine : this.h);
      g.stroke();
      g.setLineDash([]);
      g.globalAlpha = 1;
      if (roomy) { this.text(g, m.label, x + 7, y, colour, 10.5, 600); free[row] = x + 12 + w; } else free[row] = Math.max(free[row], x + 5);
    }
  }

  violations(g) {
    const run = this.run, ink = vigil.ink;
    const taken = [];
    for (const v of run.broken) {
      if (v.at < this.a || v.at > this.b) continue;
      const x = this.x(v.at), colour = v.declared ? ink("warn") : ink("bad");
      g.strokeStyle = g.fillStyle = colour;
      g.lineWidth = 2;
      g.globalAlpha = .85;
      g.beginPath();
      g.moveTo(x, this.axis);
      g.lineTo(x, this.h);
      g.stroke();
      g.globalAlpha = 1;
      for (const l of v.lanes) {
        const p = this.place.get(l), y = p ? p.line : l === 0 ? this.serverLine : -1;
        if (y < 0) continue;
        g.lineWidth = 2;
        g.beginPath();
        g.arc(x, y, 7, 0, 7);
        g.stroke();
      }
      const words = v.invariant + (v.actors.length ? " · " + v.actors.join(", ") : "");
      g.font = "700 11px " + this.font;
      const w = g.measureText(words).width + 10;
      const side = x + w > this.w - 6 ? x - w : x;
      let y = this.serverTop + 1;
      while (taken.some(o => Math.abs(o.y - y) < 15 && side < o.x + o.w && o.x < side + w) && y < this.h - 20) y += 16;
      taken.push({ x: side, y, w });
      g.fillRect(side, y, w, 16);
      this.text(g, words, side + 5, y + 8.5, ink("panel"), 11, 700);
    }
  }

  // The moment, on the canvas above: sliding draws this and nothing else.
  cursor(t, hover) {
    const g = this.overlay.getContext("2d"), ink = vigil.ink;
    g.clearRect(0, 0, this.w, this.h);
    const line = (at, colour, dash, words) => {
      const x = this.x(at);
      if (x < this.gutter - 1 || x > this.w) return;
      g.strokeStyle = colour;
      g.lineWidth = dash ? 1 : 2;
      g.setLineDash(dash ? [3, 3] : []);
      g.beginPath();
      g.moveTo(x, 16);
      g.lineTo(x, this.h);
      g.stroke();
      g.setLineDash([]);
      g.textBaseline = "middle";
      g.font = "600 11px " + this.font;
      const w = g.measureText(words).width + 10;
      const side = Math.min(Math.max(this.gutter, x - w / 2), this.w - w);
      g.fillStyle = colour;
      g.fillRect(side, 0, w, 17);
      g.fillStyle = ink("panel");
      g.fillText(words, side + 5, 9);
    };
    if (hover !== undefined) line(hover, ink("dim"), true, spacetime.seconds(hover, this.step) + " s");
    line(t, ink("accent"), false, spacetime.seconds(t, this.step) + " s");
  }

  // What a pointer is on: a record or a message near it, or a bar or a band.
  pick(x, y) {
    const run = this.run, t = this.t(x);
    let lane = -1;
    if (y >= this.serverTop && y < this.serverTop + 54) lane = 0;
    for (const [i, p] of this.place) if (y >= p.top && y < p.top + p.h) lane = i;
    if (lane < 0) return null;
    const near = 6 * this.step, list = run.recordsOf[lane];
    const k = spacetime.upTo(list, t, r => run.at[r]);
    let best = -1, distance = near;
    for (let j = Math.max(0, k - 40); j < Math.min(list.length, k + 40); j++) {
      const r = list[j];
      if (!this.show.groups[run.group(r)]) continue;
      const d = Math.abs(run.at[r] - t) - (run.told(r) ? near / 2 : 0);
      if (d < distance) { distance = d; best = r; }
    }
    const lines = [];
    for (const b of run.bands) if ((b.lane === lane || b.lane < 0) && b.from <= t && t <= b.end) lines.push(b.label + ": " + spacetime.seconds(b.from) + " s to " + (b.to < 0 ? "the end" : spacetime.seconds(b.to) + " s"));
    for (const b of lane > 0 ? run.barsAt(lane, t) : []) {
      const lease = run.lease(b, t);
      lines.push((b.rope ? "blend state" : b.kind + " context") + ", incarnation " + b.incarnation + ": " + run.barState(b, t) + (b.bytes ? ", " + spacetime.bytes(b.bytes) : ""));
      if (lease && !b.rope && run.reap) lines.push("silent for " + spacetime.span(t - lease.stamp) + " of " + spacetime.span(lease.window));
    }
    if (best >= 0) lines.unshift(spacetime.seconds(run.at[best], 1e3) + " s  " + run.who(best) + " " + run.words(best));
    return { lane, record: best, t, lines };
  }
};

// Reads the data of one run (encode.go says how it is written) and answers
// what held at a moment: everything is a sorted list and a binary search, so a
// moment costs the same in a short run and in a long one.
const spacetime = (() => {
  // The last index whose value is at most t, -1 for none.
  function upTo(list, t, value) {
    let low = 0, high = list.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if ((value ? value(list[mid]) : list[mid]) <= t) low = mid + 1; else high = mid;
    }
    return low - 1;
  }

  async function inflate(text) {
    text = text.trim();
    let bytes;
    if (Uint8Array.fromBase64) bytes = Uint8Array.fromBase64(text);
    else {
      const raw = atob(text);
      bytes = new Uint8Array(raw.length);
      for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    }
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  class Reader {
    constructor(bytes) { this.b = bytes; this.i = 0; }
    next() {
      let v = 0, scale = 1, c;
      do {
        c = this.b[this.i++];
        v += (c & 127) * scale;
        scale *= 128;
      } while (c > 127);
      return v;
    }
    signed() { const v = this.next(); return v % 2 ? -(v + 1) / 2 : v / 2; }
    column(list) { for (let i = 0; i < list.length; i++) list[i] = this.next(); return list; }
    rising(list, signed) {
      let v = 0;
      for (let i = 0; i < list.length; i++) list[i] = v += signed ? this.signed() : this.next();
      return list;
    }
  }

  class Run {
    constructor(bytes) {
      if (String.fromCharCode(...bytes.subarray(0, 4)) !== "VST1") throw new Error("this is no run of this page's version");
      const r = new Reader(bytes);
      r.i = 4;
      const length = r.next();
      const o = Object.assign(this, JSON.parse(new TextDecoder().decode(bytes.subarray(r.i, r.i + length))));
      r.i += length;
      const n = this.n = o.records;
      this.at = r.rising(new Float64Array(n));
      this.on = r.column(new Int32Array(n));
      for (let i = 0; i < n; i++) this.on[i]--;
      this.kind = r.column(new Uint8Array(n));
      this.flags = r.column(new Uint8Array(n));
      this.pattern = r.column(new Int32Array(n));
      this.first = new Uint32Array(n + 1);
      for (let i = 0, sum = 0; i < n; i++) this.first[i + 1] = sum += o.arity[this.pattern[i]];
      this.arg = r.column(new Float64Array(o.args));
      const m = o.messages;
      this.m = m;
      this.lane = r.column(new Int32Array(m));
      this.cls = r.column(new Uint8Array(m));
      this.fate = r.column(new Uint8Array(m));
      this.type = r.column(new Int32Array(m));
      this.rec = r.rising(new Int32Array(m), true);
      const moments = () => {
        const list = new Float64Array(m);
        for (let i = 0; i < m; i++) {
          const v = r.next();
          list[i] = v === 0 ? -1 : this.at[this.rec[i]] + ((v - 1) % 2 ? -v / 2 : (v - 1) / 2);
        }
        return list;
      };
      this.sent = moments();
      this.reached = moments();
      this.handled = moments();
      this.ended = moments();
      this.stampsOf = o.stamps.map(count => r.rising(new Float64Array(count), true));
      this.flightOf = o.flights.map(count => ({ at: r.rising(new Float64Array(count)), is: r.column(new Uint16Array(count)) }));
      this.scanAt = r.rising(new Float64Array(o.scans));
      this.derive();
    }

    derive() {
      for (const key of ["lanes", "bars", "bands", "marks", "broken", "patterns", "types"]) this[key] = this[key] || [];
      // Lanes are numbered as they came; people look for them by name.
      this.order = this.lanes.map((l, i) => i).slice(1).sort((a, b) => this.lanes[a].worker - this.lanes[b].worker || this.lanes[a].life - this.lanes[b].life || a - b);
      this.parts = this.patterns.map(p => p.split(/([\x01\x02])/));
      // Of each message its span; and how late anything before it ends, so that
      // what is in view is found without looking at all.
      this.from = new Float64Array(this.m);
      this.to = new Float64Array(this.m);
      this.latest = new Float64Array(this.m);
      const came = [], went = [];
      for (let i = 0, late = 0; i < this.m; i++) {
        const s = this.sent[i], r = this.reached[i], h = this.handled[i], e = this.ended[i];
        this.from[i] = s >= 0 ? s : r;
        this.to[i] = Math.max(this.from[i], r, h, e);
        this.latest[i] = late = Math.max(late, this.to[i]);
        if (r >= 0 && h >= 0) { came.push(r); went.push(h); }
      }
      this.came = Float64Array.from(came).sort();
      this.went = Float64Array.from(went).sort();
      // The records of each lane.
      const counts = new Uint32Array(this.lanes.length);
      for (let i = 0; i < this.n; i++) if (this.on[i] >= 0) counts[this.on[i]]++;
      this.recordsOf = Array.from(counts, c => new Uint32Array(c));
      counts.fill(0);
      for (let i = 0; i < this.n; i++) { const l = this.on[i]; if (l >= 0) this.recordsOf[l][counts[l]++] = i; }
      this.toldOf = this.recordsOf.map(list => list.filter(i => this.flags[i] & 4));
      this.barsOf = this.lanes.map(() => []);
      this.bars.forEach((b, i) => {
        b.stamps = this.stampsOf[i];
        b.end = b.closed >= 0 ? b.closed : this.end;
        this.barsOf[b.lane].push(b);
      });
      // Bars of a lane that overlap stand in rows.
      this.rows = this.barsOf.map(list => {
        const free = [];
        for (const b of list) {
          let row = free.findIndex(t => t <= b.open);
          if (row < 0) row = Math.min(free.length, 3);
          free[row] = b.end;
          b.row = row;
        }
        return Math.max(1, free.length);
      });
      // Bytes held by the server, a step function.
      const steps = [];
      for (const b of this.bars) if (b.bytes) { steps.push([b.open, b.bytes]); if (b.closed >= 0) steps.push([b.closed, -b.bytes]); }
      steps.sort((x, y) => x[0] - y[0]);
      this.heldAt = new Float64Array(steps.length);
      this.held = new Float64Array(steps.length);
      let sum = 0;
      this.mostHeld = 0;
      steps.forEach(([at, by], i) => { this.heldAt[i] = at; this.held[i] = sum += by; this.mostHeld = Math.max(this.mostHeld, sum); });
      for (const l of this.lanes) for (const k of ["process", "link", "health"]) l[k] = l[k] || [];
      for (const b of this.bands) b.end = b.to < 0 ? this.end : b.to;
      this.end = Math.max(this.end, 1);
    }

    // The words of a record.
    words(i) {
      const parts = this.parts[this.pattern[i]];
      let a = this.first[i];
      if (parts.length === 1) return parts[0];
      let text = "";
      for (const p of parts) {
        if (p === "\x01") text += this.arg[a++];
        else if (p === "\x02") { text += String(this.arg[a]).padStart(this.arg[a + 1], "0"); a += 2; }
        else text += p;
      }
      return text;
    }

    who(i) {
      const by = this.flags[i] & 3;
      if (by === 1) return "server";
      if (by === 0) return "world";
      return this.on[i] >= 0 ? this.lanes[this.on[i]].name : "somebody";
    }

    told(i) { return (this.flags[i] & 4) !== 0; }
    wrong(i) { return (this.flags[i] & 8) !== 0; }
    group(i) { return this.group_of[this.kind[i]]; }

    // What a track (a list of [time, state]) says at t.
    track(list, t) { const i = upTo(list, t, c => c[0]); return i < 0 ? 0 : list[i][1]; }

    window(b, t) { return b.latched >= 0 && b.latched <= t ? this.reap : this.grace; }

    // The lease of a bar at t: when it was stamped last, and its window.
    lease(b, t) {
      const i = upTo(b.stamps, t);
      if (i < 0) return null;
      return { stamp: b.stamps[i], window: this.window(b, t) };
    }

    // The bars of a lane at t: open, serving, or in release.
    barsAt(lane, t) { return this.barsOf[lane].filter(b => b.open <= t && t < (b.closed >= 0 ? b.closed : Infinity)); }

    barState(b, t) {
      if (b.closed >= 0 && b.closed <= t) return "gone";
      if (b.removed >= 0 && b.removed <= t) {
        if (b.stuck >= 0 && b.stuck <= t) return "stuck";
        if (b.hung >= 0 && b.hung <= t) return "hangs in release";
        return "in release";
      }
      if (b.serving >= 0 && b.serving <= t) return "serving";
      return b.hung >= 0 && b.hung <= t ? "hangs in release" : b.closing >= 0 && b.closing <= t ? "in release" : "opening";
    }

    // Everything about the server at t.
    server(t) {
      const s = { serving: 0, held: 0, releasing: 0, releasingBytes: 0, stuck: 0, reaped: 0, waiting: 0, scan: -1 };
      for (const b of this.bars) {
        if (b.decided >= 0 && b.removed >= 0 && b.removed <= t) s.reaped++;
        if (b.open > t) continue;
        const state = this.barState(b, t);
        if (state === "serving") s.serving++;
        else if (state === "stuck") { s.stuck++; s.releasingBytes += b.bytes; s.releasing++; }
        else if (state.includes("release")) { s.releasing++; s.releasingBytes += b.bytes; }
      }
      const h = upTo(this.heldAt, t);
      s.held = h < 0 ? 0 : this.held[h];
      s.waiting = upTo(this.came, t) - upTo(this.went, t);
      const scan = upTo(this.scanAt, t);
      if (scan >= 0) s.scan = this.scanAt[scan];
      s.process = this.track(this.lanes[0].process, t);
      return s;
    }

    flying(lane, t) { const f = this.flightOf[lane], i = upTo(f.at, t); return i < 0 ? 0 : f.is[i]; }
  }

  const clean = v => v.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");

  return {
    upTo,
    async open(text) { return new Run(await inflate(text)); },
    // A moment as people read it, with as many digits as a step needs.
    seconds(t, step) {
      const s = t / 1e9;
      let digits = step === undefined ? 3 : Math.min(9, Math.max(0, Math.ceil(-Math.log10(Math.max(step, 1) / 1e9))));
      return s.toFixed(digits);
    },
    span(t) {
      const s = t / 1e9, a = Math.abs(s);
      if (a < 1e-3) return clean((s * 1e6).toFixed(1)) + " µs";
      if (a < 1) return clean((s * 1e3).toFixed(1)) + " ms";
      return clean(s.toFixed(a < 100 ? 1 : 0)) + " s";
    },
    bytes(n) {
      const units = ["B", "KiB", "MiB", "GiB", "TiB"];
      let u = 0;
      while (n >= 1024 && u < units.length - 1) { n /= 1024; u++; }
      return clean(n.toFixed(n < 10 && u ? 1 : 0)) + " " + units[u];
    },
    // A moment of a link: 261.5s, 90ms, 4m; undefined where it is none.
    moment(text) {
      const m = /^\s*([\d.]+(?:e-?\d+)?)\s*(h|m|s|ms|us|ns)?\s*$/.exec(text || "");
      if (!m || !isFinite(+m[1])) return undefined;
      return +m[1] * { h: 3600e9, m: 60e9, s: 1e9, ms: 1e6, us: 1e3, ns: 1 }[m[2] || "s"];
    },
  };
})();

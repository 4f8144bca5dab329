package scenarios

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"vigil/core"
	"vigil/faults"
	"vigil/sim"
)

// Each malformed file gets one clear line: where, what, and what was meant.
// The lines stand in testdata/bad/lines.txt, one a file.
func TestMalformedFilesGetOneClearLine(t *testing.T) {
	want := map[string]string{}
	text, err := os.ReadFile("testdata/bad/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		file, _, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("lines.txt has the line %q without a file", line)
		}
		want[file] = line
	}
	paths, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d malformed files, want at least 20 (%v)", len(paths), err)
	}
	sort.Strings(paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		_, err = Parse(name, data)
		if err == nil {
			t.Errorf("%s was accepted", name)
			continue
		}
		if got := err.Error(); got != want[name] {
			t.Errorf("got  %s\nwant %s", got, want[name])
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error has more than one line", name)
		}
	}
}

const good = `
id: X1
name: good
title: all that a file can say
config: {reap: 60s, grace: 10m, heartbeat: 5s, timeout: 30s, device-bytes: 2GiB, prompt-tokens: 256..1024, modules: [server-driven, blend]}
workers:
  everyone: {model: m, traffic: {every: 3s..20s, stores: 1, retrieves: 3, to: until1}}
  w: {count: 3, start: 0s..2s}
  x: {mode: engine-driven, pod: 7, blend: true}
steps:
  - at: reap + scan..reap + 2*scan
    label: cut
    cut: {worker: w1, for: 20s..30s, ways: to-server, how: reset}
  - when: {step: cut}
    after: 10ms..2s
    retrieve: {worker: w2, prompt: 3}
  - when: {record: scan-began, nth: 3}
    after: 1s
    store: w3
  - at: 100s
    server-freeze: 10s
until: 10m
expect:
  - under: document
    reaped: {worker: "w1#2", after: register, within: "(reap, reap + scan]", times: 1..2}
  - holds: {worker: everyone, bytes: 0..1GiB, contexts: 1, at: 100s}
  - happened: {record: context-removed, worker: w1, cause: reaper, times: 0, since: {record: health-set, worker: w1}}
breaks:
  document: {invariant: ONE, seeds: some, actors: [w1]}
variants:
  plain: {}
  pid:
    config: {ids: pid}
    workers: {w: {start: 1s}}
    more-steps:
      - at: 200s
        kill: x
`

func TestAFileMeansWhatItSays(t *testing.T) {
	all, err := Parse("good.yaml", []byte(strings.Replace(good, "until1", "500s", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].ID != "X1/plain" || all[1].Name != "good/pid" {
		t.Fatalf("variants: %d", len(all))
	}
	p := all[0].Plan
	if p.Server.Reap != time.Minute || p.Server.EngineDriven || !p.Server.Blend || p.DeviceBytes != 2<<30 || p.PromptHigh != 1024 {
		t.Errorf("config: %+v", p)
	}
	if len(p.Workers) != 4 || p.Workers[2].Name != "w3" || p.Workers[3].Pod != 7 || p.Workers[0].Config.Model != "m" ||
		p.Workers[3].Config.Mode != core.ModeEngineDriven || p.Workers[1].Config.Interval != 5*time.Second ||
		p.Workers[0].Start != (faults.Span{High: 2 * time.Second}) || p.Workers[0].Pod == p.Workers[1].Pod {
		t.Errorf("workers: %+v", p.Workers)
	}
	st := p.Steps
	if st[0].At != (faults.Span{Low: 75 * time.Second, High: 90 * time.Second}) {
		t.Errorf("reap + scan..reap + 2*scan is %v", st[0].At)
	}
	if f := st[0].Do.Fault; f.Kind != faults.Cut || f.Worker != 0 || !f.Reset || f.Ways != core.CutToServer || f.For.High != 30*time.Second {
		t.Errorf("cut: %+v", f)
	}
	if st[1].After != 1 || st[1].Do.Kind != sim.ActRetrieve || st[1].Do.Prompt != 3 || st[1].Do.Worker != 1 {
		t.Errorf("retrieve: %+v", st[1])
	}
	if st[2].When.Record != core.ScanBegan || st[2].When.Nth != 3 || st[2].When.Worker != faults.Server || st[2].Do.Prompt != -1 {
		t.Errorf("store: %+v", st[2])
	}
	if p.FaultsOver != 120*time.Second {
		t.Errorf("the last fault is over at 90s + 30s, not at %s", p.FaultsOver)
	}
	e := all[0].Expect
	if e[0].Design != "document" || e[0].Who != (Who{0, 2}) || e[0].After != SinceRegister || e[0].Times != (Count{1, 2}) ||
		!e[0].Within.Contains(75*time.Second) || e[0].Within.Contains(60*time.Second) {
		t.Errorf("reaped: %+v", e[0])
	}
	if e[1].Holds[HeldBytes].Count != (Count{0, 1 << 30}) || e[1].At.From != 100*time.Second || !e[1].Holds[HeldContexts].Set {
		t.Errorf("holds: %+v", e[1])
	}
	if e[2].Since == nil || !e[2].Match.HasA || e[2].Match.A != uint64(core.RemovedByReaper) || e[2].Times != (Count{}) {
		t.Errorf("happened: %+v", e[2])
	}
	if b := all[1].Breaks; len(b) != 1 || b[0].All || b[0].Actors[0] != 0 {
		t.Errorf("breaks: %+v", b)
	}
	over := all[1].Plan
	if !over.Workers[0].PIDIdentity || over.Workers[0].Start != faults.Fixed(time.Second) || over.Workers[0].Traffic.Retrieve != 3 || len(over.Steps) != 5 {
		t.Errorf("the overlay: %+v", over.Workers[0])
	}
}

// Time arithmetic, with its edges.
func TestTimeArithmetic(t *testing.T) {
	var names windows
	names.set("reap", 120*time.Second)
	names.set("scan", 30*time.Second)
	names.set("server-start", 2*time.Second)
	for text, want := range map[string]string{
		"1.5s":                   "1.5s",
		"250us":                  "0.00025s",
		"2d":                     "172800s",
		"reap + scan + 5s":       "155s",
		"reap - scan":            "90s",
		"2 * (reap + scan)":      "300s",
		"scan*3 + server-start":  "92s",
		"0":                      "0s",
		"reap - server-start-1s": "117s",
		"reap + + scan":          "7: a time such as 10s, reap or reap + scan must stand here, not \"+ scan\"",
		"reap * scan":            "7: two times cannot be multiplied",
		"reap + 3":               "7: a number and a time cannot be added; give the number a unit (ns, us, ms, s, m, h, d)",
		"reap reap":              "5: \"reap\" is left over after a time",
		"scann":                  "0: there is no time called scann; did you mean \"scan\"?",
		"1.5":                    "0: 1.5 has no unit (ns, us, ms, s, m, h, d)",
		"1h - 2h":                "0: the time is negative: -3600s",
		"401d":                   "0: the time passes the limit of 400d",
		"99999999999999999999d":  "0: the number is too large",
		"(reap":                  "5: a ) is missing",
		"":                       "0: a time is missing",
	} {
		e := expression{text: text, names: &names}
		got := Seconds(e.time())
		e.end()
		if e.err != "" {
			got = strings.TrimSpace(strings.Join([]string{itoa(e.errAt), e.err}, ": "))
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

func itoa(i int) string { return string(appendInt(nil, i)) }
func appendInt(b []byte, i int) []byte {
	if i >= 10 {
		b = appendInt(b, i/10)
	}
	return append(b, byte('0'+i%10))
}

// Every file that comes with vigil is well formed, and no two stories share a name.
func TestBuiltinFiles(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range all {
		for _, name := range []string{s.ID, s.Name} {
			if seen[name] {
				t.Errorf("two scenarios are called %s", name)
			}
			seen[name] = true
		}
		if !s.World && s.Random == "" && len(s.Expect) == 0 {
			t.Errorf("%s expects nothing, so it cannot fail", s.ID)
		}
	}
	if _, err := Find("chrash"); err == nil || !strings.Contains(err.Error(), `did you mean "crash"?`) {
		t.Errorf("a misspelt name gets %v", err)
	}
	if got, err := Find("a18", "blend-state", "A18-blend-state"); err != nil || len(got) != 1 || got[0].ID != "A18" {
		t.Errorf("A18 by three names: %v, %v", got, err)
	}
	if got, err := Find("A8/pid", "a8"); err != nil || len(got) != 2 || got[0].ID != "A8/pid" {
		t.Errorf("A8 and its variants: %v, %v", got, err)
	}
}

// The loader survives anything.
func FuzzParse(f *testing.F) {
	f.Add([]byte(strings.Replace(good, "until1", "500s", 1)))
	paths, _ := filepath.Glob("testdata/bad/*.yaml")
	more, _ := filepath.Glob("files/*.yaml")
	for _, path := range append(paths, more...) {
		if data, err := os.ReadFile(path); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := Parse("fuzz.yaml", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
			return
		}
		for _, s := range all {
			if s.Plan.Until <= 0 || s.Plan.Until > MaxTime || len(s.Plan.Workers) == 0 || len(s.Plan.Workers) > MaxWorkers {
				t.Errorf("accepted: %+v", s.Plan)
			}
			for i := range s.Plan.Steps {
				if w := s.Plan.Steps[i].Do.Worker; w >= len(s.Plan.Workers) || w < faults.Server {
					t.Errorf("step %d strikes worker %d", i, w)
				}
			}
		}
	})
}

// The largest file that the bounds allow is read in time.
func TestALargeFileIsReadInTime(t *testing.T) {
	var b strings.Builder
	b.WriteString("id: X\nname: x\ntitle: x\nuntil: 10000s\nworkers: {w: {count: 100000}}\nsteps:\n")
	for i := 0; i < MaxSteps; i++ {
		b.WriteString("  - {at: 60s..110s, kill: {worker: w1, silent: true}}\n")
	}
	began := time.Now()
	all, err := Parse("large.yaml", []byte(b.String()))
	if err != nil || len(all[0].Plan.Steps) != MaxSteps {
		t.Fatalf("%v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("%d bytes took %s", b.Len(), took)
	}
}

// What a file says of real processes is laid over the story, and is as strict.
func TestAFileSaysWhatRealProcessesPlay(t *testing.T) {
	const story = `id: X
name: x
title: x
workers: {w1: {}}
until: 4000s
steps:
  - at: 20s..600s
    kill: w1
expect:
  - reaped: {worker: w1, within: "[0s, grace + scan]"}
real:
`
	list, err := Parse("x.yaml", []byte(story+"  config: {grace: 150s}\n  until: 400s\n  steps:\n    - {at: 20s, kill: w1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, r := list[0], list[0].Real
	if r == nil || r.Plan.Server.Grace != 150*time.Second || r.Plan.Until != 400*time.Second || r.Expect[0].Within.High != 180*time.Second {
		t.Errorf("the real story is not what the file says: %+v", r)
	}
	if s.Plan.Server.Grace != 3600*time.Second || s.Plan.Until != 4000*time.Second {
		t.Error("the simulated story changed with it")
	}
	if list, err = Parse("x.yaml", []byte(story+"  skip: no process can do that\n")); err != nil || list[0].RealSkip == "" || list[0].Real != nil {
		t.Errorf("skip: %v", err)
	}
	for _, wrong := range []string{"  title: other\n", "  untill: 400s\n", "  until: 1s\n"} {
		if _, err := Parse("x.yaml", []byte(story+wrong)); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

// A record without a meaning is one that nobody can look up.
func TestEveryRecordHasAMeaning(t *testing.T) {
	for _, r := range Records() {
		if r.Meaning == "" || len(r.Meaning) > 120 {
			t.Errorf("%s: %q", r.Name, r.Meaning)
		}
		if _, known := core.RecordKindNamed(r.Name); !known {
			t.Errorf("%s is no record's name", r.Name)
		}
	}
}

// What only the random worlds could say has words in a file too.
func TestCalmCanBeNeverAndOneHostCanSleep(t *testing.T) {
	list, err := Parse("x.yaml", []byte(`
id: X
name: x
title: one host sleeps
workers: {w1: {}, w2: {}}
steps:
  - at: 10s
    host-suspend: {worker: w2, for: 5s}
  - at: 20s
    host-suspend: 5s
until: 60s
calm: never
`))
	if err != nil {
		t.Fatal(err)
	}
	plan := list[0].Plan
	if got := [2]int{plan.Steps[0].Do.Fault.Worker, plan.Steps[1].Do.Fault.Worker}; got != [2]int{1, faults.Everyone} {
		t.Errorf("the hosts that sleep: %v", got)
	}
	if plan.FaultsOver != 0 {
		t.Errorf("liveness is owed from %v on", plan.FaultsOver)
	}
}

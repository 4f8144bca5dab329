package endurance_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vigil/cmd/server/servertest"
)

// Why this file: workers come and are killed, for as long as a server lives.

// Workers are started and killed at random, in the middle of whatever they do.
// In the end the server holds nothing of theirs: no mapping, no descriptor, no
// goroutine, and no segment is left in shared memory. Those that were never
// killed verify their bytes all the way through, by whatever way they transfer.
func TestKilledWorkersLeaveNothing(t *testing.T) {
	survivors := of(6, 10)
	workers := of(16, 200)
	length := of(2*time.Second, 60*time.Second)
	s := serve(t, "--time-scale", "20", "--worker-registration-grace-seconds", "120", "--l1-bytes", "512MiB", "--pool-bytes", "128MiB")
	start := func(n int) *process {
		args := []string{"--time-scale", "20", "--blocks", "128", "--every", "6s"}
		if n%4 == 3 {
			// Prompts of its own: what a server-driven worker stored is not in
			// the pool that this one reads, so it would be a miss.
			args = append(args, "--mode", "engine-driven", "--seed", "2")
		}
		return s.worker(args...)
	}
	for n := range 4 { // what the first of each kind builds is not the workers'
		w := start(n)
		w.await("retrieved", 1)
		if code := w.leave(); code != 0 {
			t.Fatalf("a worker left with code %d", code)
		}
	}
	settled := s.settle(t, holdings{}, 0)
	before := settled

	random := rand.New(rand.NewPCG(1, 2))
	var alive, all []*process
	kill := func(i int) {
		alive[i].Kill()
		alive = append(alive[:i], alive[i+1:]...)
	}
	begun := time.Now()
	peak := 0
	for len(all) < workers || time.Since(begun) < length {
		// In step with the clock, the kills a quarter behind the starts: some
		// victims have lived for long, and some have not yet registered.
		at := float64(time.Since(begun)) / float64(length)
		due, dying := int(float64(workers)*at/0.75), int(float64(workers-survivors)*(at-0.25)/0.75)
		switch {
		case len(all) < min(due+survivors, workers):
			w := start(len(all))
			all = append(all, w)
			alive = append(alive, w)
			peak = max(peak, len(alive))
		case len(alive) > survivors && len(all)-len(alive) < dying:
			kill(survivors + random.IntN(len(alive)-survivors)) // the first ones stay
		default:
			time.Sleep(20 * time.Millisecond)
		}
	}
	for len(alive) > survivors {
		kill(survivors + random.IntN(len(alive)-survivors))
	}
	killed := time.Now()
	driven := 0
	for n := range survivors {
		if n%4 != 3 {
			driven++
		}
	}
	eventually(t, "only the survivors' memory is mapped", 60*time.Second, func() bool {
		p := s.status()
		return p.ServerDriven.Total == driven && p.EngineDriven.Total == survivors-driven && p.Memory.Mappings == driven &&
			p.Releases.InProgress == 0 && s.holdings().mappings == driven
	})
	t.Logf("%d workers, up to %d at once, %d killed in %.0f s; the last one's memory was back %.1f s later (window and scan: 7.5 s)",
		len(all), peak, len(all)-survivors, killed.Sub(begun).Seconds(), time.Since(killed).Seconds())
	for n, w := range all {
		if n >= survivors {
			if left := servertest.Segments(w.PID); len(left) > 0 {
				t.Errorf("left in shared memory: %s", strings.Join(left, " "))
			}
		}
	}
	verified := 0
	wanted := map[int]int{}
	for _, w := range alive {
		wanted[w.PID] = w.count("retrieved") + 1
	}
	for _, w := range alive {
		w.await("retrieved", wanted[w.PID]) // they still serve
		verified += w.count("retrieved")
		if n := w.count("wrong"); n > 0 {
			t.Errorf("worker %d: %d retrieves delivered wrong bytes", w.PID, n)
		}
		w.Signal(syscall.SIGTERM)
	}
	for _, w := range alive {
		if code := w.ended(); code != 0 {
			t.Errorf("survivor %d left with code %d", w.PID, code)
		}
	}
	after := s.settle(t, before, 30*time.Second)
	p := s.status()
	t.Logf("before: %s", before)
	t.Logf("after:  %s; %d retrieves of the survivors verified, reaps %v", after, verified, p.Liveness.Reaps)
	if after.mappings > before.mappings || after.descriptors > before.descriptors || after.goroutines > before.goroutines {
		t.Errorf("left in the server: %s; before: %s\n%s", after, before, s.get("/debug/pprof/goroutine?debug=1"))
	}
	if p.Memory.Mapped != 0 || p.ServerDriven.Total+p.EngineDriven.Total != 0 {
		t.Errorf("the server still serves: %+v", p)
	}
	if code := s.leave(); code != 0 {
		t.Errorf("the server drained with code %d", code)
	}
	for _, w := range append(all, s.process) {
		if left := servertest.Segments(w.PID); len(left) > 0 {
			t.Errorf("left in shared memory: %s", strings.Join(left, " "))
		}
	}
}

// settle waits until a server holds no more than before, at most so long; with
// nothing to compare, until it holds the same twice, a quarter of a second apart.
func (s *server) settle(t *testing.T, before holdings, limit time.Duration) (h holdings) {
	t.Helper()
	if limit == 0 {
		for last := (holdings{-1, 0, 0}); ; {
			if h = s.holdings(); h == last {
				return h
			}
			last = h
			time.Sleep(250 * time.Millisecond)
		}
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		h = s.holdings()
		if h.mappings <= before.mappings && h.descriptors <= before.descriptors && h.goroutines <= before.goroutines || time.Since(begun) > limit {
			return h
		}
	}
}

// The server is killed in the middle of transfers, again and again. Workers of
// both kinds recover each time, no byte is ever wrong, and the next start
// removes what the dead one left in shared memory.
func TestTheServerIsKilledInMidTransfer(t *testing.T) {
	kills := of(3, 50)
	bind := "ipc://" + filepath.Join(t.TempDir(), "socket")
	start := func() *server {
		return serve(t, "--bind", bind, "--time-scale", "20", "--l1-bytes", "256MiB", "--pool-bytes", "64MiB")
	}
	s := start()
	common := []string{
		"--time-scale", "20", "--interval", "6s", "--request-timeout", "60s", "--every", "0", "--block-bytes", "16384",
		"--prompt-chunks", "2", "--blocks", "512",
	}
	workers := []*process{
		s.worker(append(common, "--in-flight", "4")...), s.worker(append(common, "--in-flight", "4", "--seed", "2")...),
		s.worker(append(common, "--in-flight", "2", "--seed", "3", "--mode", "engine-driven")...),
	}
	random := rand.New(rand.NewPCG(3, 4))
	cutOff := func() (n int) {
		for _, w := range workers {
			n += w.count("failed") + w.count("dropped")
		}
		return n
	}
	cut, left := 0, 0
	var slowest time.Duration
	for n := range kills {
		began := time.Now()
		for _, w := range workers {
			w.await("retrieved", w.count("retrieved")+5)
		}
		if n > 0 {
			slowest = max(slowest, time.Since(began))
		}
		time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
		had := cutOff()
		dead := s.PID
		s.Kill()
		if len(servertest.Segments(dead)) > 0 {
			left++
		}
		s = start()
		if more := servertest.Segments(dead); len(more) > 0 {
			t.Errorf("kill %d: the next start leaves %s", n, strings.Join(more, " "))
		}
		for _, w := range workers {
			w.await("recovered", 1)
		}
		eventually(t, "somebody was cut off", 20*time.Second, func() bool {
			if cutOff() > had {
				cut++
				return true
			}
			total := 0
			for _, w := range workers {
				total += w.count("retrieved")
			}
			return time.Since(began) > 15*time.Second // the kill met nothing under way
		})
	}
	for _, w := range workers {
		w.await("retrieved", w.count("retrieved")+5)
		if n := w.count("wrong"); n > 0 {
			t.Errorf("worker %d: %d retrieves delivered wrong bytes", w.PID, n)
		}
	}
	retrieved, recovered := 0, 0
	for _, w := range workers {
		retrieved += w.count("retrieved")
		recovered += w.count("recovered")
		if code := w.leave(); code != 0 {
			t.Errorf("worker %d left with code %d", w.PID, code)
		}
	}
	if code := s.leave(); code != 0 {
		t.Errorf("the server drained with code %d", code)
	}
	t.Logf("%d kills, %d with transfers under way, %d left a segment that the next start removed; %d recoveries, the slowest %.1f s after the start; %d retrieves, all verified, %d requests cut off",
		kills, cut, left, recovered, slowest.Seconds(), retrieved, cutOff())
	if cut < kills/2 {
		t.Errorf("only %d of %d kills met a transfer", cut, kills)
	}
	for _, w := range append(workers, s.process) {
		if more := servertest.Segments(w.PID); len(more) > 0 {
			t.Errorf("left in shared memory: %s", strings.Join(more, " "))
		}
	}
}

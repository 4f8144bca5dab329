package real

import (
	"testing"

	"vigil/core"
)

const ms = core.Time(1_000_000)

func kinds(list []core.Record) (out []core.RecordKind) {
	for i := range list {
		out = append(out, list[i].Kind)
	}
	return out
}

func looksOf(every core.Time, bytes ...uint64) (list []look) {
	for i, b := range bytes {
		m := map[int]uint64{}
		if b > 0 {
			m[7] = b
		}
		list = append(list, look{core.Time(i) * every, core.Time(i)*every + ms, m})
	}
	return list
}

// /proc decides, the server's word only dates: a mapping that is claimed and
// not there was never opened, one that stays was never closed, one that nobody
// speaks of is there all the same.
func TestTruthAboutMappings(t *testing.T) {
	makers := map[int]core.InstanceID{7: 42}
	open := core.Record{Actor: core.ActorServer, Kind: core.OpenEnded, Instance: 42, Incarnation: 1, A: 1, B: page}
	began, ended := open, open
	open.At, began.At, ended.At = 205*ms, 605*ms, 606*ms
	began.Kind, ended.Kind = core.CloseBegan, core.CloseEnded
	all := []core.Record{open, began, ended}
	for _, c := range []struct {
		name   string
		looks  []look
		claims []core.Record
		want   []core.RecordKind
	}{
		{"as claimed", looksOf(100*ms, 0, 0, 0, page, page, page, page, 0, 0, 0), all, []core.RecordKind{core.MappingOpened, core.MappingClosing, core.MappingClosed}},
		{"claimed and not there", looksOf(100*ms, 0, 0, 0, 0, 0, 0, 0, 0), all, nil},
		{"not given back", looksOf(100*ms, 0, 0, 0, page, page, page, page, page, page, page), all, []core.RecordKind{core.MappingOpened, core.MappingClosing}},
		{"given back late", looksOf(100*ms, 0, 0, 0, page, page, page, page, page, page, 0), all, []core.RecordKind{core.MappingOpened, core.MappingClosing, core.MappingClosed}},
		{"never spoken of", looksOf(100*ms, 0, 0, page, page, 0, 0), nil, []core.RecordKind{core.MappingOpened, core.MappingClosed}},
	} {
		got := mappingTruth(c.looks, claims(c.claims), makers, 1000*ms, 30*ms)
		k := kinds(got)
		same := len(k) == len(c.want)
		for i := range c.want {
			same = same && k[i] == c.want[i]
		}
		if !same {
			t.Errorf("%s: %v, want %v", c.name, k, c.want)
		}
		if c.name == "given back late" && same && got[2].At != 900*ms {
			t.Errorf("given back at %d, seen gone at 900 ms", got[2].At/ms)
		}
	}
}

func TestSegmentNamesSayWhoseTheyAre(t *testing.T) {
	if pid, start, ok := segmentOwner("vigil-kv_4026531836_77_123456_1"); !ok || pid != 77 || start != 123456 {
		t.Errorf("%d %d %v", pid, start, ok)
	}
	for _, foreign := range []string{"", "sem.x", "lmcache_kv_1_0", "a_b_c_d_e", "vigil-kv_1_0_2_3"} {
		if _, _, ok := segmentOwner(foreign); ok {
			t.Errorf("%s is taken for one of ours", foreign)
		}
	}
}

// A close that begins before a copy's end is recorded is a release under use.
func TestTruthAboutCopies(t *testing.T) {
	r := func(k core.RecordKind, b uint64) core.Record {
		return core.Record{Actor: core.ActorServer, Kind: k, Instance: 42, A: 1, B: b}
	}
	if got := copyTruth([]core.Record{r(core.CopyBegan, 5), r(core.CopyEnded, 5), r(core.CloseBegan, 6)}); len(got) != 0 {
		t.Errorf("a copy that had ended: %v", kinds(got))
	}
	if got := copyTruth([]core.Record{r(core.CopyBegan, 5), r(core.CloseBegan, 6), r(core.CopyEnded, 5)}); len(got) != 1 || got[0].Kind != core.CopyTouchedRelease {
		t.Errorf("a copy under way: %v", kinds(got))
	}
}

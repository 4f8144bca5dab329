package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"vigil/core"
)

// The page loads nothing from anywhere and asks its own server alone.
func TestTheOverviewIsOnePage(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", overview())
	s := httptest.NewServer(mux)
	defer s.Close()
	answer, err := http.Get(s.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	policy := answer.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "connect-src 'self'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the page's policy is %q, without %q", policy, want)
		}
	}
	for _, bad := range []string{"src=\"http", "href=\"http", "@import", "url(", "onclick=", "innerHTML"} {
		if strings.Contains(string(body), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if other, err := http.Get(s.URL + "/nothing"); err != nil || other.StatusCode != http.StatusNotFound {
		t.Errorf("another path answers %v, %v", other, err)
	}
}

// Who was reaped of late, why, and no more of them than the bound.
func TestRecentReapsSayWhy(t *testing.T) {
	r := &recent{}
	removed := core.Record{Instance: 7, Context: core.ServerDriven, Incarnation: 3, A: uint64(core.RemovedByReaper), B: 2}
	second := core.Time(time.Second)
	r.add(&removed, &core.Record{At: 140 * second, A: uint64(10 * second), B: uint64(120 * second), Flag: true})
	r.add(&removed, &core.Record{At: 3700 * second, A: uint64(10 * second), B: uint64(3600 * second)})
	removed.A = uint64(core.RemovedByProof)
	r.add(&removed, nil)
	list := r.latest()
	if len(list) != 3 || list[0].Reason != "proof" || list[1].Reason != "grace" || list[2].Reason != "window" {
		t.Fatalf("the reaps are %+v", list)
	}
	if list[2].Silent != 130 || list[2].Window != 120 || list[2].Instance != "7" || list[2].Times != 2 {
		t.Errorf("the first is %+v", list[2])
	}
	for range 2 * recentReaps {
		removed.Incarnation++
		r.add(&removed, nil)
	}
	if list = r.latest(); len(list) != recentReaps || list[0].Incarnation != uint64(removed.Incarnation) {
		t.Errorf("%d are kept, the latest of incarnation %d; want %d and %d", len(list), list[0].Incarnation, recentReaps, removed.Incarnation)
	}
}

package main

import (
	"strings"
	"testing"

	"vigil/core"
)

// A token that is pasted back means the same run, whatever its scenario is
// called and whichever repairs were on.
func TestTokenRoundTrip(t *testing.T) {
	for _, design := range []string{"document", "hardened", "document+stamp-on-arrival", "hardened~stamp-on-arrival"} {
		c, err := parseChoice(design)
		if err != nil {
			t.Fatal(err)
		}
		if c.String() != design {
			t.Errorf("%s reads back as %s", design, c)
		}
		for _, want := range []token{
			{scenario: "A1", seed: 0, design: c, world: "00ff", hash: "12345678"},
			{scenario: "A8/pid", seed: 1<<64 - 1, design: c, world: "abcd", hash: "00000000"},
			{scenario: "mine", file: "../my stories/über@home.v2.yaml", seed: 17, design: c, world: "0001", hash: "ffffffff"},
		} {
			text := want.String()
			if strings.ContainsAny(text, " \"'$`\\&;|<>()*?!#\t\n") {
				t.Errorf("%s is not safe in a shell", text)
			}
			got, err := parseToken(text)
			if err != nil || got != want {
				t.Errorf("%s reads back as %+v, %v; want %+v", text, got, err, want)
			}
		}
	}
}

// Every single lost or changed character is noticed, and said in one line.
func TestDamagedTokenIsOneClearLine(t *testing.T) {
	whole := token{scenario: "A8/pid", seed: 17, design: choice{preset: "document"}, world: "abcd", hash: "12345678"}.String()
	var damaged []string
	for i := range whole {
		damaged = append(damaged, whole[:i]+whole[i+1:], whole[:i], whole[:i]+"~"+whole[i+1:])
	}
	damaged = append(damaged, "", "hello", "v2.A1.17.document.3fa29b3e77a1c4d5", strings.Repeat("v1.", 5000), "v1....", "v1.%zz.1.document.0000000000000000")
	missed := 0
	for _, text := range damaged {
		_, err := parseToken(text)
		if err == nil {
			missed++ // sixteen bits of check: one in 65,536 may pass
			continue
		}
		if strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
			t.Errorf("the error is not one short line: %v", err)
		}
	}
	if missed > 1 {
		t.Errorf("%d of %d damaged tokens were read", missed, len(damaged))
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add("v1.A1.17.document.3fa29b3e77a1c4d5")
	f.Add(token{scenario: "a", file: "b.yaml", seed: 3, design: choice{preset: "hardened", protections: core.Hardened()}, world: "abcd", hash: "12345678"}.String())
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseToken(text)
		if err != nil {
			return
		}
		again, err := parseToken(got.String())
		if err != nil || again != got {
			t.Errorf("%q: %+v reads back as %+v, %v", text, got, again, err)
		}
	})
}

func TestSeeds(t *testing.T) {
	t.Setenv("GITHUB_SHA", "0123456789abcdef")
	for text, want := range map[string]seedRange{
		"1": {0, 1}, "200": {0, 200}, "10..20": {10, 11}, "7..7": {7, 1},
		"18446744073709551615..18446744073709551615": {1<<64 - 1, 1},
	} {
		if got, err := parseSeeds(text); err != nil || got != want {
			t.Errorf("--seeds %s is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "x", "1..", "..2", "5..2", "1...3", "1e3", "999999999999", "0..18446744073709551615"} {
		if got, err := parseSeeds(text); err == nil {
			t.Errorf("--seeds %s is read as %v", text, got)
		} else if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "--seeds") {
			t.Errorf("the error does not name the flag on one line: %v", err)
		}
	}
	a, errA := parseSeeds("commit")
	b, errB := parseSeeds("commit")
	t.Setenv("GITHUB_SHA", "fedcba")
	c, errC := parseSeeds("commit")
	if errA != nil || errB != nil || errC != nil || a != b || a == c || a.Count != defaultSeeds {
		t.Errorf("commits' seeds: %v, %v, %v", a, b, c)
	}
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// What deploy/ says must be what this program takes: a setting that was
// renamed would otherwise be found on somebody's node.
func TestTheDeploymentsAreAccepted(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	text, err := os.ReadFile("../../deploy/server.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files["server.yaml"] = string(text)
	text, err = os.ReadFile("../../deploy/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n---\n")
	var configMap struct {
		Data map[string]string `yaml:"data"`
	}
	if err := yaml.Unmarshal([]byte(first), &configMap); err != nil || configMap.Data["server.yaml"] == "" {
		t.Fatalf("the config map: %v", err)
	}
	files["daemonset.yaml"] = configMap.Data["server.yaml"]
	for name, text := range files {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := call(t, "check-config", "--config", path, "--heartbeat-interval", "10"); c.code != 0 || strings.Contains(c.out, "warning") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// docs/server.md shows calls of the program; each flag in it must be one.
func TestThePageNamesFlagsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	root := newRoot(&streams{})
	for _, c := range root.Commands() {
		help := call(t, c.Name(), "--help").out
		for _, f := range regexp.MustCompile(`--[a-z0-9][a-z0-9-]*`).FindAllString(help, -1) {
			known[f] = true
		}
	}
	for _, f := range regexp.MustCompile(`(?m)(?:^|[ \x60(])(--[a-z0-9][a-z0-9-]*)`).FindAllStringSubmatch(string(text), -1) {
		if !known[f[1]] {
			t.Errorf("docs/server.md names %s, which no command has", f[1])
		}
	}
}

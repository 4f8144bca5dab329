package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"vigil/scenarios"
)

// Why this file: a setting may come from a flag, the environment or a file,
// and all three have the same names, the same values and the same errors.
//
// A setting has one name, such as worker-reap-timeout-seconds. Its flag is
// --worker-reap-timeout-seconds, its environment variable
// VIGIL_WORKER_REAP_TIMEOUT_SECONDS, its key in a file
// worker_reap_timeout_seconds. A flag goes before the environment, that before
// the file, that before the default.

// setting is one of them. It sees text only, wherever that came from.
type setting struct {
	name    string
	initial string // the default, as text
	usage   string
	isBool  bool
	take    func(text string) error
}

// settings are those of one command.
type settings struct {
	list  []*setting
	texts map[string]*flagText
	file  *string // --config
}

// flagText is a pflag.Value that remembers text; take judges it later, so that
// every source is judged alike.
type flagText struct {
	text   string
	isBool bool
}

func (f *flagText) String() string     { return f.text }
func (f *flagText) Set(t string) error { f.text = t; return nil }
func (f *flagText) Type() string {
	if f.isBool {
		return "bool"
	}
	return "value"
}

func (s *settings) add(list ...*setting) { s.list = append(s.list, list...) }

// bind gives every setting its flag.
func (s *settings) bind(cmd *cobra.Command) {
	s.texts = map[string]*flagText{}
	for _, x := range s.list {
		f := &flagText{text: x.initial, isBool: x.isBool}
		s.texts[x.name] = f
		cmd.Flags().Var(f, x.name, x.usage)
		if x.isBool {
			cmd.Flags().Lookup(x.name).NoOptDefVal = "true"
		}
	}
	s.file = cmd.Flags().String("config", "", "read settings from `FILE` (YAML; the flags' names with _ for -)")
}

func environmentName(name string) string {
	return "VIGIL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

func fileKey(name string) string { return strings.ReplaceAll(name, "-", "_") }

// resolve takes every setting from where it is said first. It returns all that
// is wrong, each naming where it was said.
func (s *settings) resolve(cmd *cobra.Command) error {
	var errs []error
	path, pathFrom := *s.file, "--config"
	if !cmd.Flags().Changed("config") {
		path, pathFrom = os.Getenv("VIGIL_CONFIG"), "VIGIL_CONFIG"
	}
	filed := map[string]fileValue{}
	if path != "" {
		var err error
		if filed, err = readSettingsFile(path, s.list); err != nil {
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
				err = fmt.Errorf("%s: %w", pathFrom, err)
			}
			errs = append(errs, err)
		}
	}
	for _, x := range s.list {
		text, from := x.initial, "default of "+x.name
		if v, ok := filed[x.name]; ok {
			text, from = v.text, v.place+": "+fileKey(x.name)
		}
		if v, ok := os.LookupEnv(environmentName(x.name)); ok {
			text, from = v, environmentName(x.name)
		}
		if cmd.Flags().Changed(x.name) {
			text, from = s.texts[x.name].text, "--"+x.name
		}
		if err := x.take(text); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", from, err))
		}
	}
	return errors.Join(errs...)
}

// mistyped finds variables of the environment that are nearly a setting's. It
// is a warning and not an error: an orchestrator puts names of its own there,
// such as VIGIL_PORT for a service called vigil.
func (s *settings) mistyped() []string {
	var names []string
	for _, x := range s.list {
		names = append(names, environmentName(x.name))
	}
	names = append(names, "VIGIL_CONFIG")
	var warnings []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "VIGIL_") || strings.HasPrefix(name, "VIGIL_STANDIN_") { // those are the stand-in driver's
			continue
		}
		known := false
		for _, n := range names {
			known = known || n == name
		}
		if near, ok := scenarios.Nearest(name, names); ok && !known {
			warnings = append(warnings, fmt.Sprintf("%s is no setting; did you mean %s?", name, near))
		}
	}
	return warnings
}

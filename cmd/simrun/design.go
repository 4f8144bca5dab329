package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"vigil/core"
	"vigil/scenarios"
)

// designFlags choose what the core under test does.
type designFlags struct {
	design             string
	protect, unprotect []string
}

func (f *designFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.design, "design", "hardened",
		"what the core does: `PRESET` is hardened (every repair there is, the default of server run too) or document (the design document, holes and all)")
	cmd.Flags().StringSliceVar(&f.protect, "protect", nil, "switch the repairs `NAME[,NAME]` on (see simrun list protections)")
	cmd.Flags().StringSliceVar(&f.unprotect, "unprotect", nil, "switch the repairs `NAME[,NAME]` off")
}

// choice is what the flags come to: the preset that the scenarios' own
// declarations are read for, and the protections that are on.
type choice struct {
	preset      string
	protections core.Protections
}

func (f *designFlags) choose() (choice, error) {
	c := choice{preset: f.design}
	switch f.design {
	case "document":
		c.protections = core.Document()
	case "hardened":
		c.protections = core.Hardened()
	default:
		return c, unknownName("--design", f.design, scenarios.Designs)
	}
	for _, set := range []struct {
		flag  string
		names []string
		on    bool
	}{{"--protect", f.protect, true}, {"--unprotect", f.unprotect, false}} {
		for _, name := range set.names {
			name = strings.TrimSpace(name)
			if !c.protections.Set(name, set.on) {
				return c, unknownName(set.flag, name, core.ProtectionNames())
			}
		}
	}
	for _, on := range f.protect {
		for _, off := range f.unprotect {
			if on == off {
				return c, fmt.Errorf("%s is in both --protect and --unprotect", on)
			}
		}
	}
	return c, nil
}

// String is the design's name in reports and tokens: the preset, and what was
// switched beside it.
func (c choice) String() string {
	base := core.Document()
	if c.preset == "hardened" {
		base = core.Hardened()
	}
	name := c.preset
	for _, p := range core.ProtectionNames() {
		on, was := c.protections, base
		on.Set(p, true)
		was.Set(p, true)
		switch isOn, wasOn := on == c.protections, was == base; {
		case isOn && !wasOn:
			name += "+" + p
		case !isOn && wasOn:
			name += "~" + p
		}
	}
	return name
}

// flags are the flags that choose the design on a command line.
func (c choice) flags() string {
	var on, off []string
	for _, part := range strings.Split(strings.ReplaceAll(c.String(), "~", "+~"), "+")[1:] {
		if name, isOff := strings.CutPrefix(part, "~"); isOff {
			off = append(off, name)
		} else {
			on = append(on, name)
		}
	}
	text := "--design " + c.preset
	if len(on) > 0 {
		text += " --protect " + strings.Join(on, ",")
	}
	if len(off) > 0 {
		text += " --unprotect " + strings.Join(off, ",")
	}
	return text
}

// added are the protections that are on beside those of the preset.
func (c choice) added() []string {
	var names []string
	for _, part := range strings.Split(c.String(), "+")[1:] {
		name, _, _ := strings.Cut(part, "~") // what follows a ~ is off
		names = append(names, name)
	}
	return names
}

// parseChoice reads what String wrote.
func parseChoice(text string) (choice, error) {
	f := designFlags{}
	end := strings.IndexAny(text, "+~")
	if end < 0 {
		end = len(text)
	}
	f.design = text[:end]
	for rest := text[end:]; rest != ""; {
		sign := rest[0]
		next := strings.IndexAny(rest[1:], "+~")
		name := rest[1:]
		if next >= 0 {
			name, rest = rest[1:next+1], rest[next+1:]
		} else {
			rest = ""
		}
		if sign == '+' {
			f.protect = append(f.protect, name)
		} else {
			f.unprotect = append(f.unprotect, name)
		}
	}
	return f.choose()
}

// unknownName is the one line about a value that is none of the valid ones.
func unknownName(what, got string, valid []string) error {
	if near, ok := scenarios.Nearest(got, valid); ok {
		return fmt.Errorf("%s: there is no %q; did you mean %q?", what, got, near)
	}
	return fmt.Errorf("%s: there is no %q; it is one of %s", what, got, strings.Join(valid, ", "))
}

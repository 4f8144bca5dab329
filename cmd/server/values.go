package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"vigil/core"
	"vigil/core/loop"
)

// Why this file: how the text of a setting is read, and what is said where it
// cannot be.

func takeText(to *string) func(string) error {
	return func(text string) error { *to = text; return nil }
}

func takeOneOf(to *string, valid ...string) func(string) error {
	return func(text string) error {
		for _, v := range valid {
			if text == v {
				*to = text
				return nil
			}
		}
		return unknownName(text, valid)
	}
}

func takeList(to *[]string) func(string) error {
	return func(text string) error {
		*to = nil
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*to = append(*to, part)
			}
		}
		return nil
	}
}

func takeBool(to *bool) func(string) error {
	return func(text string) (err error) {
		if *to, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("must be true or false; got %q", text)
		}
		return nil
	}
}

func takeInt(to *int, low, high int) func(string) error {
	return func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return fmt.Errorf("must be a whole number from %d to %d; got %q", low, high, text)
		}
		*to = n
		return nil
	}
}

func takeUint(to *uint64, high uint64) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n > high {
			return fmt.Errorf("must be a whole number from 0 to %d; got %q", high, text)
		}
		*to = n
		return nil
	}
}

// takeSeconds reads a setting whose unit is in its name.
func takeSeconds(to *time.Duration, what string) func(string) error {
	return func(text string) (err error) {
		*to, err = core.ParseSeconds(what, text)
		return err
	}
}

// takeSpan reads 10s, 250ms, or a plain number of seconds.
func takeSpan(to *time.Duration, low time.Duration) func(string) error {
	return func(text string) error {
		d, err := core.ParseSeconds("span", text)
		if err != nil {
			d, err = time.ParseDuration(text)
		}
		if err != nil || d < low {
			return fmt.Errorf("must be a time of at least %s, such as 10s, 250ms or 10; got %q", low, text)
		}
		*to = d
		return nil
	}
}

var byteUnits = []struct {
	suffix string
	factor uint64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1000}, {"MB", 1000_000}, {"GB", 1000_000_000}, {"TB", 1000_000_000_000}, {"B", 1},
}

// takeBytes reads 1073741824, 4GiB or 500MB.
func takeBytes(to *uint64) func(string) error {
	return func(text string) error {
		digits, factor := text, uint64(1)
		for _, u := range byteUnits {
			if rest, ok := strings.CutSuffix(text, u.suffix); ok {
				digits, factor = strings.TrimSpace(rest), u.factor
				break
			}
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > math.MaxInt64/factor {
			return fmt.Errorf("must be a number of bytes such as 1073741824, 4GiB or 500MB; got %q", text)
		}
		*to = n * factor
		return nil
	}
}

func takeScale(to *int) func(string) error {
	return takeInt(to, 1, loop.MaxTimeScale)
}

func takeLevel(to *slog.Level) func(string) error {
	return func(text string) error {
		levels := []string{"debug", "info", "warn", "error"}
		for i, l := range levels {
			if text == l {
				*to = slog.LevelDebug + slog.Level(4*i)
				return nil
			}
		}
		return unknownName(text, levels)
	}
}

// designChoice is a preset of protections, and what is switched beside it.
type designChoice struct {
	preset             string
	protect, unprotect []string
}

func (d *designChoice) settings() []*setting {
	names := func(to *[]string) func(string) error {
		take := takeList(to)
		return func(text string) error {
			if err := take(text); err != nil {
				return err
			}
			for _, name := range *to {
				if _, _, ok := core.DescribeProtection(name); !ok {
					return unknownName(name, core.ProtectionNames())
				}
			}
			return nil
		}
	}
	return []*setting{
		{name: "design", initial: "hardened", usage: "hardened (every repair), or document (the design document, holes and all)", take: takeOneOf(&d.preset, "hardened", "document")},
		{name: "protect", usage: "switch these repairs on, separated by commas (simrun list protections names them)", take: names(&d.protect)},
		{name: "unprotect", usage: "switch these repairs off", take: names(&d.unprotect)},
	}
}

func (d *designChoice) protections() (core.Protections, error) {
	p := core.Hardened()
	if d.preset == "document" {
		p = core.Document()
	}
	for _, name := range d.protect {
		p.Set(name, true)
	}
	for _, name := range d.unprotect {
		for _, on := range d.protect {
			if on == name {
				return p, fmt.Errorf("%s is in both protect and unprotect", name)
			}
		}
		p.Set(name, false)
	}
	return p, nil
}

// takeAddress reads HOST:PORT, or off.
func takeAddress(to *string) func(string) error {
	return func(text string) error {
		if text == "off" || text == "" {
			*to = ""
			return nil
		}
		_, port, err := net.SplitHostPort(text)
		if err == nil {
			if n, e := strconv.ParseUint(port, 10, 16); e != nil || n > 65535 {
				err = errors.New("port")
			}
		}
		if err != nil {
			return fmt.Errorf("must be HOST:PORT such as 127.0.0.1:8080, or off; got %q", text)
		}
		*to = text
		return nil
	}
}

// loopbackOnly reports whether an address can be reached from this host alone.
func loopbackOnly(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

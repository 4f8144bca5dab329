package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"vigil/core"
	"vigil/scenarios"
)

// A token names one run in a chat line:
//
//	v1.SCENARIO.SEED.DESIGN.CHECK
//
// SCENARIO is the id, and for a scenario that is not built in, @ and the path
// of its file. CHECK is 16 hex digits: four of the world as the file describes
// it, eight of the run's hash, four over all of the token. So a replay can say
// whether the token was mistyped, the scenario changed, or the code did.

// tokenVersion is raised when what a token means changes.
const tokenVersion = "v1"

// maxToken bounds what is read as a token.
const maxToken = 4096

// token is a token's content.
type token struct {
	scenario string
	file     string // empty where the scenario is built in
	seed     uint64
	design   choice
	world    string // four hex digits
	hash     string // eight hex digits
}

// newToken names one run of a scenario.
func newToken(s selected, seed uint64, design choice, hash core.Digest) token {
	t := token{scenario: s.ID, seed: seed, design: design, world: worldDigest(s.Scenario), hash: shortHash(hash)}
	if !s.builtin {
		t.file = s.File
	}
	return t
}

// worldDigest folds what the seed acts on: the world and its steps.
func worldDigest(s *scenarios.Scenario) string {
	text, err := json.Marshal(s.Plan) // plain data in declared order: equal plans are equal bytes
	if err != nil {
		return "0000"
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:2])
}

func shortHash(h core.Digest) string { return fmt.Sprintf("%08x", uint32(h)^uint32(h>>32)) }

// String writes the token.
func (t token) String() string {
	name := escapeName(t.scenario)
	if t.file != "" {
		name += "@" + escapeName(t.file)
	}
	body := fmt.Sprintf("%s.%s.%d.%s.%s%s", tokenVersion, name, t.seed, t.design, t.world, t.hash)
	return body + checkDigits(body)
}

func checkDigits(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:2])
}

// escapeName keeps a name printable and safe in a shell.
func escapeName(name string) string {
	return strings.ReplaceAll(url.PathEscape(strings.ReplaceAll(name, "/", "\x00")), "%00", "/")
}

// parseToken reads a token; its error is one line that says what is wrong.
func parseToken(text string) (token, error) {
	damaged := func(why string) (token, error) {
		shown := text
		if len(shown) > 60 {
			shown = shown[:57] + "..."
		}
		return token{}, fmt.Errorf("%q is no token that simrun wrote: %s", shown, why)
	}
	if len(text) > maxToken {
		return damaged("it is too long")
	}
	version, _, _ := strings.Cut(text, ".")
	if version != tokenVersion {
		if len(version) > 1 && version[0] == 'v' && strings.Trim(version[1:], "0123456789") == "" {
			return damaged(fmt.Sprintf("it is of version %s, this simrun reads %s", version, tokenVersion))
		}
		return damaged("one reads like " + tokenVersion + ".A1.17.document.3fa29b3e77a1c4d5")
	}
	fields := strings.Split(text, ".")
	n := len(fields)
	if n < 5 {
		return damaged("its end is missing")
	}
	check := fields[n-1]
	if len(check) != 16 {
		return damaged("its last part must be 16 digits; some were lost")
	}
	if body := text[:len(text)-4]; checkDigits(body) != check[12:] {
		return damaged("a character of it was lost or changed")
	}
	t := token{world: check[:4], hash: check[4:12]}
	name, file, _ := strings.Cut(strings.Join(fields[1:n-3], "."), "@")
	var err error
	if t.scenario, err = url.PathUnescape(name); err != nil {
		return damaged("its scenario is not readable")
	}
	if t.file, err = url.PathUnescape(file); err != nil {
		return damaged("its file is not readable")
	}
	if t.seed, err = strconv.ParseUint(fields[n-3], 10, 64); err != nil {
		return damaged("its seed is no number")
	}
	if t.design, err = parseChoice(fields[n-2]); err != nil {
		return damaged("its design is not known here: " + err.Error())
	}
	return t, nil
}

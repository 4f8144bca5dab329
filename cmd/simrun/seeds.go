package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
)

// defaultSeeds is how many seeds each scenario runs over where no flag says.
const defaultSeeds = 200

// maxSeeds bounds one call: a slip of the keyboard is an error, not a week.
const maxSeeds = 100_000_000

// seedRange is the seeds from First on, Count of them.
type seedRange struct {
	First uint64
	Count int
}

func (r seedRange) String() string {
	if r.Count == 1 {
		return strconv.FormatUint(r.First, 10)
	}
	return fmt.Sprintf("%d..%d", r.First, r.First+uint64(r.Count)-1)
}

// parseSeeds reads --seeds: N is the seeds 0 to N-1, A..B both ends included,
// commit a range that is this commit's own, so that a CI that runs it on each
// commit tries new seeds each time and can still repeat any of them.
func parseSeeds(text string) (seedRange, error) {
	const wanted = "it is a number such as 200, a range such as 10..20, or commit"
	if text == "commit" {
		id, err := commitID()
		if err != nil {
			return seedRange{}, err
		}
		sum := sha256.Sum256([]byte(id))
		return seedRange{First: binary.BigEndian.Uint64(sum[:]) >> 24, Count: defaultSeeds}, nil
	}
	if low, high, isRange := strings.Cut(text, ".."); isRange {
		a, errA := strconv.ParseUint(low, 10, 64)
		b, errB := strconv.ParseUint(high, 10, 64)
		if errA != nil || errB != nil {
			return seedRange{}, fmt.Errorf("--seeds %q is not understood: %s", text, wanted)
		}
		if b < a {
			return seedRange{}, fmt.Errorf("--seeds %s is empty: its end is below its start; try %d..%d", text, b, a)
		}
		if b-a >= maxSeeds {
			return seedRange{}, fmt.Errorf("--seeds %s is more than %d seeds; --for runs for a time instead", text, maxSeeds)
		}
		return seedRange{First: a, Count: int(b-a) + 1}, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		return seedRange{}, fmt.Errorf("--seeds %q is not understood: %s", text, wanted)
	case n == 0:
		return seedRange{}, fmt.Errorf("--seeds 0 would run nothing; the least is 1")
	case n > maxSeeds:
		return seedRange{}, fmt.Errorf("--seeds %s is more than %d seeds; --for runs for a time instead", text, maxSeeds)
	}
	return seedRange{Count: int(n)}, nil
}

// commitVariables are where the common CI services put the commit's id.
var commitVariables = []string{"GITHUB_SHA", "CI_COMMIT_SHA", "BUILDKITE_COMMIT", "CIRCLE_SHA1", "GIT_COMMIT"}

// commitID is the id of the commit under test: what CI says, else what the
// folder's repository says, else what this program was built from.
func commitID() (string, error) {
	for _, v := range commitVariables {
		if id := os.Getenv(v); id != "" {
			return id, nil
		}
	}
	if out, err := exec.Command("git", "rev-parse", "HEAD").Output(); err == nil {
		return strings.TrimSpace(string(out)), nil
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value, nil
			}
		}
	}
	return "", fmt.Errorf("--seeds commit: no commit is known here (no git repository, and none of %s is set)", strings.Join(commitVariables, ", "))
}

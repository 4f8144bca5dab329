// Package scenarios is the stories: their file format, its strict checker, and
// the files that come with vigil.
//
// Contract. Parse turns one file into scenarios or into one error that reads
// `file:line:column: what is wrong; did you mean "x"?`. It never panics and
// never allocates more than its named bounds (bounds.go) however the file
// lies. What Parse returns is data, read only, and safe to share between
// goroutines; running it is scenarios/run's business (simulated) and
// scenarios/real's (real processes). The format is described in
// docs/scenarios.md.
package scenarios

// Package reports turns the results of runs into what people and other
// programs read: the terminal table, JSON, JUnit XML, the annotations of a
// CI service, the bug report at the end of a failing run, and a progress
// line.
//
// Contract. The package knows plain data only (suite.go, bench.go): it runs
// nothing and reads no clock but the one of the progress line. The same data
// gives the same bytes. JSON keys and the meaning of each are a contract with
// other people's CI (version 1): a key may be added, none changes. Files are
// written whole or not at all (file.go).
package reports

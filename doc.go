// Package vigil holds nothing but the tests of the project's frame: which
// folder may import which, and what no file may say. The code lives in the
// folders that docs/architecture.md walks through.
package vigil

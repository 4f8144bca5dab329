// Package spacetime turns the records of one run into a space-time diagram
// that a browser draws: a lane for the server and for each life of a worker,
// messages between them, contexts as bars with their lease, faults as bands,
// what broke as marks, and every record in words.
//
// Contract. It knows core's records and words about them, nothing of scenarios,
// monitors or simulators: New, then Add for each record in the order in which
// they were written, Broke for what broke, and Data. The same records give the
// same bytes. What it draws is derived here and not in the browser, so that it
// is tested here: the browser only places it. Messages are paired by what a
// connection promises (order), because the records hold no message numbers.
//
// Data is one deflated stream (encode.go says how) with varint columns: a run
// of 100,000 events stays far below 10 MB. MaxRecords bounds what one diagram
// keeps; what comes after is counted in Left and said on the page.
package spacetime

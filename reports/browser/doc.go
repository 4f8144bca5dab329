// Package browser drives a headless Chromium: for tests of pages and for the
// pictures of the documentation. Nothing else imports it.
//
// Contract. Find says whether there is a Chromium, Start starts one, a Page
// opens a file, runs code in it, clicks, types, takes pictures, and keeps what
// the page wrote to its console. It speaks the browser's debugging protocol
// over two pipes, so no port is opened and no library is needed. Every call
// ends within a bound of its own (callBound); a browser that does not answer
// is an error and not a hang. Close ends the browser that Start started.
package browser

// Package tool holds the registry of tools and the one place where a tool is shown, prepared, run
// and probed (spec 4.2 to 4.4): within its timeout, with a panic turned into a failed result, and
// with every outcome named by the rules of decision 5. It stores nothing; the engine does.
//
// Each attempt at a tool's code (run, prepare, probe, preview, preconditions) has one goroutine,
// which is waited for until the timeout and the grace are over. A tool that ignores its context
// beyond that is abandoned: its goroutine is lost, its late outcome is dropped, and its call says
// that it may still be at work.
package tool

// Package tool holds the registry of tools and the one place where a tool is prepared, run and probed (spec 4.2, 4.3): within its
// timeout, with a panic turned into a failed result, and with every outcome named by the rules of decision 5. It stores nothing;
// the engine does.
//
// Run starts one goroutine for each attempt and waits for it until the tool's timeout and grace are over. A tool that ignores its
// context beyond that is abandoned: its goroutine is lost, its late outcome is dropped, and Abandoned counts it.
package tool

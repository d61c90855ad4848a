// Package archtest holds the architecture to docs/design.md, by tests over the source of the whole
// module: which package may import which (arrows_test.go), which packages must stay pure, and the
// limits of the house on files, functions and comments.
//
// It reads every Go file under every build tag and system, not only those that this machine builds.
// Nothing imports it.
package archtest

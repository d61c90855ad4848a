//go:build !faults

package fault

// Point does nothing in a release build.
func Point(string) {}

// Bug is false in a release build, so that the compiler removes the bug.
func Bug(string) bool { return false }

//go:build !linux

package workspace

// lookAt describes an entry of a directory, of a link the link itself.
func lookAt(dir int, name string) (SurveyEntry, error) { return statAt(dir, name) }

// isSystem reports whether the kernel generates the directory's content; only Linux checks this.
func (h handle) isSystem() bool { return false }

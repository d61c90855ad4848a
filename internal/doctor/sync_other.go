//go:build !linux

package doctor

import "time"

// trySync is for systems that have files without a name.
func trySync(string) (time.Duration, error) { return 0, errCannotTry }

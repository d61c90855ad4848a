package regie

import "slices"

// Efforts are how hard a model can be asked to think, from least to most (spec 6.3). A vendor that
// lacks one takes its nearest.
func Efforts() []string { return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"} }

// EffortWithin clamps an effort to a scale and leaves a value outside Efforts unchanged.
func EffortWithin(effort, least, most string) string {
	scale := Efforts()
	at := slices.Index(scale, effort)
	if at < 0 {
		return effort
	}
	return scale[min(max(at, slices.Index(scale, least)), slices.Index(scale, most))]
}

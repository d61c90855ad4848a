package main

import (
	"slices"
	"time"
)

// percentile returns the p-th percentile of values, which it sorts; 0 for none.
func percentile[T int64 | float64 | time.Duration](values []T, p float64) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(p/100*float64(len(values))))]
}

func median[T int64 | float64 | time.Duration](values []T) T { return percentile(values, 50) }

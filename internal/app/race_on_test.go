//go:build race

package app_test

// waitingSessions are fewer under the race detector, which makes all of this several times slower.
const waitingSessions = 300

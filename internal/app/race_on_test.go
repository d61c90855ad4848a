//go:build race

package app_test

// waitingSessions are fewer under the race detector, which makes SQLite ten times slower.
const waitingSessions = 300

//go:build !race

package app_test

// waitingSessions is the thousand of the issue.
const waitingSessions = 1000

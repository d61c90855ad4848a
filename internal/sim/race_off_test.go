//go:build !race

package sim

// quick is how many sessions a run of all tests simulates.
const quick = 60

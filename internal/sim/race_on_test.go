//go:build race

package sim

// quick is how many sessions a run of all tests simulates; under the race detector each takes ten
// times as long.
const quick = 10

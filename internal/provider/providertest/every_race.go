//go:build race

package providertest

// every is how many requests one is held to the rules of all vendors: under the race detector that
// takes most of the time, and finds nothing that it does not find without.
const every = 4

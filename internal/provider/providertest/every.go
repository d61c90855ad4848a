//go:build !race

package providertest

// every is how many requests one is held to the rules of all vendors.
const every = 1

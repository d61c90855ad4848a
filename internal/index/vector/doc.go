// Package vector finds the vectors that are nearest to one (spec 8.3). Of each it keeps the signs
// alone in memory, a bit for each dimension: 96 bytes for 768 of them, and 32 bytes more for the
// bookkeeping, so that 200,000 vectors take 25 MiB where the vectors themselves would take 586. The
// signs say which vectors may be near; of the best of those the vectors are fetched, from wherever
// they lie, and compared exactly.
//
// It is pure and starts no goroutine.
package vector

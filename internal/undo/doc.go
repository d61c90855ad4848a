// Package undo takes back what a round made of the files of its workspace (decision 16). It works
// on what calls stored before they started, so it needs no model, and no tool but for what its
// evidence means (tool.Sides.Changes).
//
// An undo is planned from the store and the files as they are: several changes of one file become
// one, each file is compared with what the round left, and whatever stands in the way is a
// conflict. With a conflict nothing happens. Else what is there now is kept as blobs, the undo is
// stored as intended, the files are put back one by one, each in one step and only if it still is
// what was found, and what became of each is stored with the end of it. A process that dies in the
// middle leaves an intended undo; the next engine ends it before anything else runs: it looks at
// each file and does what is left to do. So nothing is done twice, and nothing is lost: what a file
// held before the undo, and before the round, are both in the store.
//
// An undo holds its session as a round does, under the lease of its process and an epoch (invariant
// 8): where several engines share a database, another one ends it only when that lease is over, and
// who was taken over from changes no more files and finishes nothing.
//
// What the package decides where the specification leaves it open:
//   - A file that holds already what it held before the round is no conflict: there is nothing to
//     do to it.
//   - A file that changes between the look and the change is left as it is, and the undo says so
//     (NOT_UNDONE); the others go back. What is left can be undone again.
//   - Undo of a file that is not kept, or is no longer a file, cannot be forced.
//   - The directories that the round made go where nothing else is in them.
//
// Undos of one workspace come one after the other. The package starts no goroutine; Close waits for
// what runs on those of its callers.
package undo

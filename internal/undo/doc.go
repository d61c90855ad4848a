// Package undo reverts a round's changes to the files of its workspace (decision 16). It works on
// what calls stored before they started, so it needs no model. It needs a tool only to read its
// evidence (tool.Sides.Changes).
//
// An undo is planned from the store and the present files. Several changes of one file become one,
// and each file is compared with the state that the round left. A difference is a conflict, and
// with a conflict nothing happens. Otherwise the present contents are kept as blobs and the undo is
// stored as intended. Files are restored one by one, each in one step and only if unchanged since
// the plan. The outcome of each is stored with the end of the undo. If a process dies in the
// middle, it leaves an intended undo. The next engine finishes that before anything else runs: it
// looks at each file and does what is left. So nothing is done twice or lost: the store has each
// file's content from before the undo and from before the round.
//
// An undo holds its session as a round does, under the lease of its process and an epoch (invariant
// 8). If several engines share a database, another one takes an undo over only after that lease
// expires. The engine that lost the lease changes no more files and finishes nothing.
//
// Decisions where the specification leaves it open:
//   - A file with its content from before the round already is no conflict: it needs no change.
//   - A file that changes between plan and restore is left unchanged, and the undo says so
//     (NOT_UNDONE); the others are restored. The rest can be undone again.
//   - Undo of a file that is not kept, or is no longer a file, cannot be forced.
//   - The directories that the round made are removed if they are empty.
//
// Undos of one workspace run one after the other. The package starts no goroutine; Close waits for
// the undos of its callers.
package undo

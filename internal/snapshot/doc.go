// Package snapshot secures what a workspace holds before a command runs in it, and says afterwards
// what the command has changed (decision 16, spec 8.2).
//
// Nobody knows beforehand what a command will write, so all of the workspace is secured: each
// file's content once, under its SHA-256, in a directory of the data directory, and a tree, which
// is the list of the files with what the file system says of each. A file whose stamp is the one of
// the last tree is not read again, so that a snapshot where nothing has moved costs a walk through
// the directories. What is new is safe on the disk before Take returns. Files are cloned where the
// file system can do that (reflinks) and copied elsewhere; never linked, because commands write in
// place.
//
// The snapshot is a working copy, not what an undo is made of: of the files that a command has
// changed Compare hands the contents from before to the store, where they are blobs like those of
// other tools' changes, and from then on nothing here is needed for them. What is kept here is
// bounded, and can be thrown away at any time when no call is open that was started on it.
//
// What is not covered: what ignore files name, .git and .regie, files beyond the bounds, FIFOs and
// other special files, names that no path can have, empty directories and the permissions of
// directories. The ignore files that counted before the command count after it too: what it writes
// into them hides nothing.
//
// The package starts goroutines only in Compare, which wait for the store; they end before it
// returns. Take and Compare of one workspace come one after the other, in one process; the data
// directory belongs to one.
package snapshot

// Package snapshot saves the content of a workspace before a command runs in it, and reports
// afterwards what the command changed (decision 16, spec 8.2).
//
// A command's writes cannot be foreseen, so the whole workspace is saved: each file's content once,
// under its SHA-256, in a directory of the data directory, and a tree. A tree lists the files with
// their stamps from the file system. A file with the stamp of the last tree is not read again, so
// an unchanged workspace costs a walk through the directories. New contents are safe on the disk
// before Take returns. Files are cloned if the file system can do that (reflinks), and copied
// otherwise; never linked, because commands write in place.
//
// An undo does not use the snapshot: Compare hands the earlier contents of changed files to the
// store, where they are blobs like those of other tools. Snapshots are bounded in size, and can be
// deleted whenever no call that started on one is open.
//
// Not covered are: ignored files, .git and .regie, files beyond the bounds, FIFOs and other special
// files, names that no path can have, empty directories and the permissions of directories. The
// ignore files from before the command count after it too, so the command cannot hide its writes by
// changing them.
//
// The package starts goroutines only in Compare, which wait for the store; they end before it
// returns. Take and Compare of one workspace run one after the other, in one process; the data
// directory belongs to one.
package snapshot

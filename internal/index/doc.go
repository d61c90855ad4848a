// Package index keeps what is known of one workspace's files and searches it (spec 8.3): files by
// path, SHA-256 and times, cut into chunks at the boundaries of their syntax, and the terms of each
// chunk, as package posting keeps them. It lies in a SQLite file of its own (decision 32), all of
// which can be made again.
//
// Who owns what. The methods of an Index may be called from any goroutine. An update starts one
// goroutine that walks the workspace and some that read and cut; they end before it returns, and
// what they make is written by the caller's goroutine alone. Several processes may use one file:
// readers never wait, writers come one after the other (a lock beside the file).
//
// What can happen to the file, and what becomes of it:
//   - A kill at any moment leaves what was committed, or, while it is being made, nothing under its
//     name.
//   - It may be deleted, exchanged, cut off or overwritten at any time, also while it is open: the
//     next use sees that, makes it anew, and the next update fills it. Connections never remove the
//     write-ahead log when they close, because under its name there may be another file's by then.
//   - A power cut may lose what was written last, not more; the next update reads those files
//     again.
//
// Files are read through the confined root by a walk: what is secret, what belongs to git or regie,
// and what ignore files name is never read, so no search can find it.
package index

// Package index searches one workspace's files (spec 8.3). It keeps files by path, SHA-256 and
// times, their chunks, cut at the boundaries of their syntax, the terms of each chunk in FTS5, and
// vectors. All lies in a SQLite file of its own (decision 32), and can be made again.
//
// Goroutines. The methods of an Index may be called from any goroutine. An update starts workers
// that read and cut files; they end before it returns, and the caller's goroutine alone writes. A
// watch has one goroutine and an empty file in the system's temporary directory, which end with the
// watch: at the next update or at Close. Several
// processes may use one file: readers never wait, writers take turns by a lock file.
//
// What can happen to the file:
//   - A kill at any moment leaves what was committed.
//   - A damaged file, one of another version or of another program is made anew by the next use,
//     and the next update fills it. A file that is deleted while it is open is used to its end.
//   - A power cut may lose what was written last, not more; the next update reads those files
//     again.
//
// Update walks and reads through the confined root: it never reads what is secret, what belongs to
// git or regie, and what ignore files name, so no search can find that.
package index

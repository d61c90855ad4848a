// Package workspace confines everything that touches files to a directory (spec 8.1, 8.2): no path
// of a model leaves the root, and no link does, even if another process swaps links meanwhile.
//
// Every access resolves the path first, link by link, to a path without links, and notes every name
// on the way that the rules protect. Then it walks that path directory by directory and checks
// that each is the directory that it resolved. The opened file is therefore inside the root
// (os.Root ensures that at each step) and is the one that the rules judged. Nothing is checked by
// name and then used by name. A path that changes meanwhile is tried again; then CodeFileChanged is
// returned.
//
// What the package decides where the specification leaves it open:
//   - Absolute paths are accepted where they lie inside the root by their letters; so are links
//     with an absolute target.
//   - Links are followed for reading and on the way to a file that is written; a file is not
//     written through a link in its last place.
//   - Files are always replaced, never overwritten: a hard link elsewhere keeps the old content. A
//     file without any write permission is refused although replacing it would work. The permission
//     bits stay, the owner too where the system allows it; extended attributes do not.
//   - Names are protected in every directory, in letters of either case, and also as a file system
//     might read them that drops what is invisible. What is Regie's own (Keep) is so by its place:
//     the one list that is the process's, because every Root has to know of it.
//   - Ignore files are git's in form and meaning. They hide names from walks; whether what they
//     name may be changed is the tools' business.
//
// Search, Walk, Survey and Tree go through directories by one walk (walker), and differ in what
// they leave out.
//
// Only Search starts goroutines, one that walks and some that search; they end before it returns. A
// walk opens each name relative to the directory that it was read from and follows no link, so its
// rules, which are about names, hold for what it reads.
package workspace

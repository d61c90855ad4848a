// Package posting keeps which terms stand in which chunks, and ranks chunks by BM25 (spec 8.3). It
// knows no database: what it writes are bytes that its caller keeps, and pages that its caller
// reads for it.
//
// A segment is what one commit, or a merge of several, has written, and never changes. In it chunks
// are numbered from 0, in the order of their ids, and each of its terms has a list: for each chunk
// with that term its number and how often it stands there, weighted. Lists lie in pages, ordered by
// their terms; a long one has a page of its own. What was taken out stays in its segment until that
// is merged, and is passed over: so a View, which is all segments at one moment, counts what is
// alive alone, and its scores are those that a fresh index of the same chunks would give.
//
// Nothing here is shared between goroutines but a View, which does not change.
package posting

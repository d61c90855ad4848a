// Package trust keeps what people have decided about the files of a workspace that would instruct
// or configure agents: .regie/ and .agents/skills/ (decision 32). A decision is about content:
// which files, with which bytes, in which directory. Anything else that stands there later, by a
// pull or a move, is not trusted.
//
// Look reads what is there, into memory and once, so that what is judged and what is used are the
// same bytes. Store keeps the decisions in the data directory: one file a workspace, readable by
// its owner alone, replaced as a whole. Nothing in a workspace, no variable and no model makes one:
// only regie trust does.
package trust

// Package trust keeps people's decisions about the files of a workspace that instruct or configure
// agents: .regie/ and .agents/skills/ (decision 32). A decision is about content: which files, with
// which bytes, in which directory. Later content, after a pull or a move, is not trusted.
//
// Look reads the content into memory once, so that the judged and the used bytes are the same.
// Store keeps the decisions in the data directory: one file per workspace, readable by its owner
// alone, replaced as a whole. People decide with regie trust, the settings page or the API. No
// workspace file, variable or model does.
package trust

// Package gitruns finds what git would run, or believe, of a directory in which agents work,
// because its configuration says so: the directory of core.hooksPath, the files that are included,
// the programs of filters and helpers. It reads configuration as git does, runs nothing, and takes
// every condition of an includeIf as met.
package gitruns

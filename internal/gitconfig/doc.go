// Package gitconfig finds what git would run or trust because of the configuration of a directory:
// hooks (core.hooksPath), included files, the programs of filters and helpers. It reads
// configuration as git does, runs nothing, and takes every condition of an includeIf as met.
package gitconfig

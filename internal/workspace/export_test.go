package workspace

// Explain lets tests see the codes of system errors that they cannot bring about.
func (r *Root) Explain(err error, name string) error { return r.explain(err, name) }

// IgnoredBy compares the names of a path with the rules of one ignore file.
func IgnoredBy(rules string, names ...string) bool {
	for i := range names {
		names[i] = latin1(names[i])
	}
	_, ignored := verdict(parseIgnore([]byte(rules)), names, false)
	return ignored
}

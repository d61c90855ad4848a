package workspace

// Explain lets tests see the codes of system errors that they cannot bring about.
func (r *Root) Explain(err error, name string) error { return r.explainError(err, name) }

// IgnoredBy compares a path with the rules of one ignore file.
func IgnoredBy(rules, name string) bool {
	_, ignored := lastVerdict(parseIgnore([]byte(rules)), name, false)
	return ignored
}

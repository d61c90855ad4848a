package workspace

// Explain lets tests see the codes of system errors that they cannot bring about.
func (r *Root) Explain(err error, name string) error { return r.explain(err, name) }

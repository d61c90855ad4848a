package store

// Setting is a stored value that replaces a default (decision 52).
type Setting struct {
	// Name is its place in the configuration: limits.chat.max_action_retries.
	Name string
	// Value is as the configuration writes it; empty takes back what was settled before.
	Value string
}

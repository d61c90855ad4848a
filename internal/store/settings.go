package store

// Setting is a value that was set through the interface and overrides the default (decision 52).
type Setting struct {
	// Name is its key in the configuration: limits.chat.max_action_retries.
	Name string
	// Value has the configuration's format; empty removes an earlier value.
	Value string
}

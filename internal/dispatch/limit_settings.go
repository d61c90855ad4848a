package dispatch

// LimitSettings are the limits of chats and of automations.
type LimitSettings struct {
	Chat       LimitValues `json:"chat"`
	Automation LimitValues `json:"automation"`
}

// LimitValues are the limits of one type of session.
type LimitValues struct {
	Queries      LimitValue `json:"max_data_query_iterations"`
	Retries      LimitValue `json:"max_action_retries"`
	FormatErrors LimitValue `json:"max_format_error_retries"`
	Total        LimitValue `json:"max_autonomous_roundtrips"`
}

// LimitValue is one limit.
type LimitValue struct {
	// Value is what the next round gets. A workspace's own file and a request may lower it further.
	Value int `json:"value"`
	// Origin is default, api where it was stored here, or the place in a file or on the command
	// line that fixes it: then it cannot be set here.
	Origin string `json:"origin"`
	Fixed  bool   `json:"fixed,omitempty"`
	// Stored is the stored value, even where another one is in force; 0 means none. Default is the
	// value without any setting.
	Stored  int `json:"stored,omitempty"`
	Default int `json:"default"`
}

// LimitChanges are limits to be stored. What is left out stays; 0 takes back what was stored.
type LimitChanges struct {
	Chat       LimitChange `json:"chat,omitzero"`
	Automation LimitChange `json:"automation,omitzero"`
	// By is who says so, for the audit.
	By string `json:"by,omitempty"`
}

// LimitChange are those of one type of session.
type LimitChange struct {
	Queries      *int `json:"max_data_query_iterations,omitempty"`
	Retries      *int `json:"max_action_retries,omitempty"`
	FormatErrors *int `json:"max_format_error_retries,omitempty"`
	Total        *int `json:"max_autonomous_roundtrips,omitempty"`
}

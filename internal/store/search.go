package store

import "github.com/regie-run/regie"

// SaidMessage is a message that a search looks at, with the name of its session.
type SaidMessage struct {
	regie.Message
	Session string
}

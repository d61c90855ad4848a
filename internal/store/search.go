package store

import "github.com/regie-run/regie"

// SaidMessage is a message for a search, with the name of its session.
type SaidMessage struct {
	regie.Message
	Session string
}

package chat

import "github.com/regie-run/regie/client"

// Control is what a terminal asks of an engine.
type Control = *client.Client

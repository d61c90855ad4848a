// Package access knows who asks a server, and what of it is theirs (spec 11.2): secrets and their
// form, the tokens behind them, their scopes, the workspaces that they see, and how much they may
// ask at once. Transports let requests in through a Gate; the caller is in the context, where the
// service (internal/control) finds it.
//
// What a token opens is read from the store at each request: what was revoked on another node is
// refused by the next one. What is open already, streams and long answers, is looked at again every
// two seconds by the one goroutine that Gate.Watch starts, which ends with its context.
package access

// Package compat is the endpoint for clients of OpenAI's and Anthropic's APIs (spec 10.2, decision
// 35): /v1/models, /v1/chat/completions, /v1/responses and /v1/messages over a Control. Each agent
// is a model. A request to one becomes a message of a session, and its answer is what the round
// says; a request for provider/model goes to that provider as it is, without a session.
//
// The package stores nothing and decides nothing about rounds: it reads the session's log, so it
// answers a repeated request from there. A request is served on its own goroutine; a timer, stopped
// before the handler returns, keeps a silent stream alive.
package compat

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// KeyMeta is the field of a call's _meta that holds the call's id, the same for each attempt of one
// call: a server of class keyed tells a repetition by it (decision 8, spec 13). The protocol names
// no such field; its own proposal for one (SEP-3182) was closed. It asks that names of others begin
// with a reversed domain of theirs, so this is the one that the project's repository gives it.
const KeyMeta = "io.github.regie-run/idempotency-key"

// remote is a tool of a server as it was when it was handed out.
type remote struct {
	offer
	server *Server
}

// Definition implements tool.Tool.
func (t *remote) Definition() regie.ToolDefinition { return t.definition }

// Sides implements tool.Sided. A server's tool brings in what its authors like and may send on what
// it is given; only one that runs here, and that the operator trusts, does neither (decision 34).
func (t *remote) Sides() tool.Sides {
	return tool.Sides{Flow: func(context.Context, *tool.Invocation) (tool.Flow, error) {
		trusted := t.server.config.TrustHints
		return tool.Flow{Outside: !trusted, Egress: !trusted || t.server.config.URL != ""}, nil
	}}
}

// Run implements tool.Tool. It starts a server that has ended, within the bounds of its restarts,
// and refuses to run a tool that the server no longer describes as it did: CodeToolChanged,
// CodeServerDown (both NotDone), CodeServerLost, or CodeToolError with what the server said.
func (t *remote) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	ctx, cancel := t.server.boundContext(ctx)
	defer cancel()
	session, err := t.server.readySession(ctx, t)
	if err != nil {
		return tool.Result{}, tool.NotDone{Err: err}
	}
	arguments := inv.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	ctx, flight := withFlight(ctx, t.definition.Kind == regie.KindAction)
	result, err := session.client.CallTool(ctx, &sdk.CallToolParams{
		Meta: sdk.Meta{KeyMeta: inv.CallID.String()}, Name: t.remote, Arguments: arguments,
	})
	if err != nil {
		return tool.Result{}, t.server.explainFailure(ctx, session, flight, err)
	}
	text := hideSecrets(renderContent(result), t.server.secrets)
	switch {
	case result.NeedsInput():
		return tool.Result{}, regie.Errorf(regie.CodeToolError,
			"the tool asks for input while it runs, which Regie does not support: it did not finish")
	case result.IsError:
		// It is the tool's own word that it failed, not that nothing happened: it may have sent
		// three mails of four. So it is no NotDone, and the outcome of an action is UNKNOWN with
		// this sentence (decision 5). A query has simply failed.
		return tool.Result{}, regie.Errorf(regie.CodeToolError, "the tool reports a failure: %s", text)
	}
	return tool.Result{Content: text}, nil
}

// explainFailure names what became of a call that has no result. It is NotDone only where the call
// cannot have been taken up: nothing of it was written, or the answer says by the protocol's own
// words that it was not processed.
func (s *Server) explainFailure(ctx context.Context, session *session, flight *flight, err error) error {
	said, answered := errors.AsType[*jsonrpc.Error](err)
	// The server's life ends its calls' contexts a moment later than its connection: a call that
	// met the end of that first was closed too.
	over := ctx.Err() != nil || s.life.Err() != nil
	switch status := flight.status.Load(); {
	case !flight.sent.Load() && over:
		return tool.NotDone{Err: s.contextEnd(ctx)}
	case !flight.sent.Load():
		return tool.NotDone{Err: s.downError(err)}
	case answered && said.Code == jsonrpc.CodeInvalidParams:
		// Also an unknown tool, by the protocol.
		return tool.NotDone{Err: regie.Errorf(regie.CodeBadArguments, "the MCP server %s refused the call: %s",
			s.config.Name, s.quoteServer(said.Message))}
	case answered && (said.Code == jsonrpc.CodeMethodNotFound || said.Code == jsonrpc.CodeInvalidRequest ||
		said.Code == jsonrpc.CodeParseError):
		return tool.NotDone{Err: regie.Errorf(regie.CodeToolError, "the MCP server %s refused the call: %s",
			s.config.Name, s.quoteServer(said.Message))}
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return tool.NotDone{Err: regie.Errorf(regie.CodeNoPermission,
			"the MCP server %s refused the call with HTTP status %d: check its headers", s.config.Name, status)}
	case isRefused(status):
		return tool.NotDone{Err: regie.Errorf(regie.CodeServerDown,
			"the MCP server %s refused the call with HTTP status %d: %s", s.config.Name, status, s.errorCause(err))}
	case over:
		return s.contextEnd(ctx)
	case answered && said.Code != rejected:
		return regie.Errorf(regie.CodeToolError, "the MCP server %s answered with an error: %s",
			s.config.Name, s.quoteServer(said.Message))
	case status >= http.StatusInternalServerError:
		return regie.Errorf(regie.CodeServerLost, "the MCP server %s answered with HTTP status %d", s.config.Name,
			status)
	}
	waitClosed(time.Second, session.over) // what it said last comes a moment later than its end
	return regie.Errorf(regie.CodeServerLost,
		"the connection to the MCP server %s was lost after the call was sent: %s",
		s.config.Name, s.describeEnd(session, err))
}

// rejected is the code by which the SDK marks a message that its transport did not bring over.
const rejected = -32005

// contextEnd is why a call's context has ended: its own reasons are for the pipeline to explain.
func (s *Server) contextEnd(ctx context.Context) error {
	if s.life.Err() != nil {
		return s.closedError()
	}
	return ctx.Err()
}

// flight is what is known of a call on its way, for the one question that its failure leaves: can
// the server have seen it?
type flight struct {
	action bool // it gets a connection of its own
	// a request carries it: the next one with the same context is another (the notice of a
	// cancellation)
	taken  atomic.Bool
	sent   atomic.Bool  // bytes of it may have left
	status atomic.Int32 // the answer's HTTP status, 0 before
}

type flightKey struct{}

func withFlight(ctx context.Context, action bool) (context.Context, *flight) {
	f := &flight{action: action}
	return context.WithValue(ctx, flightKey{}, f), f
}

// flightOf returns the flight of a call's context, and an unused one for everything else.
func flightOf(ctx context.Context) *flight {
	if f, ok := ctx.Value(flightKey{}).(*flight); ok {
		return f
	}
	return &flight{}
}

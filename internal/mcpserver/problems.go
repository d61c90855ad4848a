package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

// problems makes of what the SDK says in plain text, where a request does not come as far as
// JSON-RPC, what all of a server's errors are: a problem with a stable code, in our words and the
// language of who asks. MCP's clients go by the status. A call that JSON-RPC has an answer for gets
// that, as over stdio.
func problems(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &problemWriter{ResponseWriter: w, text: text.New(r.Header.Get("Accept-Language")), method: r.Method}
		if r.Method == http.MethodPost { // the SDK tells what keeps it from reading a body by one word
			body, err := httpread.Body(w, r, maxBody)
			if err != nil {
				out.tell(httpread.Status(regie.CodeOf(err)), err)
				return
			}
			if out.unclear = unclear(body); out.unclear == nil {
				if said, err := jsonrpc.DecodeMessage(body); err == nil {
					out.call, _ = said.(*jsonrpc.Request)
				}
			}
			r = r.WithContext(r.Context())
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		next.ServeHTTP(out, r)
		out.end()
	})
}

// maxSaid bounds what is kept of a plain text.
const maxSaid = 4 << 10

// noSession is what a client is told that names a session which is not there for it.
var noSession = regie.Errorf(regie.CodeNotFound, "there is no such MCP session here: begin one by initialize")

type problemWriter struct {
	http.ResponseWriter
	text    *text.Printer
	method  string
	call    *jsonrpc.Request // what the body is, nil where it is none or several
	unclear *refusal         // of the body
	status  int              // of what is a plain text, else 0
	named   bool             // the request names a session, and nothing but the SDK answers it any more
	begun   bool
	said    bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (p *problemWriter) WriteHeader(status int) {
	if p.begun || p.status != 0 {
		return
	}
	if status >= http.StatusBadRequest && strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		if p.status = status; p.named && status == http.StatusForbidden {
			p.status = http.StatusNotFound // a session that is not its caller's is as one that is nowhere (spec 2.1)
		}
		return
	}
	p.begun = status >= http.StatusOK
	p.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (p *problemWriter) Write(data []byte) (int, error) {
	if p.status == 0 {
		p.begun = true
		return p.ResponseWriter.Write(data)
	}
	p.said.Write(data[:min(len(data), maxSaid-min(maxSaid, p.said.Len()))])
	return len(data), nil
}

// Flush implements http.Flusher, for who looks for nothing else.
func (p *problemWriter) Flush() {
	if p.status == 0 {
		_ = http.NewResponseController(p.ResponseWriter).Flush() // the next write says what is wrong
	}
}

// Unwrap is for http.ResponseController.
func (p *problemWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// end writes the problem, where there is one.
func (p *problemWriter) end() {
	if p.status == 0 {
		return
	}
	said := strings.TrimSpace(p.said.String())
	if answer := p.answer(said); answer != nil {
		p.answered(http.StatusOK, answer)
		return
	}
	p.tell(p.status, p.why(said))
}

// answered writes the answer of JSON-RPC to a message.
func (p *problemWriter) answered(status int, answer []byte) {
	p.Header().Set("Content-Type", "application/json")
	p.Header().Del("Content-Length")
	p.ResponseWriter.WriteHeader(status)
	_, _ = p.ResponseWriter.Write(answer) // the client has gone if this fails
}

// tell writes a problem.
func (p *problemWriter) tell(status int, why error) {
	p.Header().Set("Content-Type", "application/problem+json")
	p.Header().Del("Content-Length")
	p.ResponseWriter.WriteHeader(status)
	_ = json.NewEncoder(p.ResponseWriter).Encode(map[string]any{ // the client has gone if this fails
		"type": "about:blank", "title": http.StatusText(status), "status": status, "code": regie.CodeOf(why),
		"detail": plain.Strip(p.text.Error(why)),
	})
}

// refuse answers a request in place of the SDK.
func refuse(w http.ResponseWriter, why error) {
	if p, is := w.(*problemWriter); is {
		p.tell(httpread.Status(regie.CodeOf(why)), why)
		return
	}
	http.Error(w, why.Error(), httpread.Status(regie.CodeOf(why)))
}

// How the SDK begins what it says of a call that JSON-RPC has an error for.
const (
	notHandled = "JSON RPC not handled: "
	notValid   = "invalid request: "
)

// answer is the answer of JSON-RPC to a call that is none, nil where there is no call to answer.
func (p *problemWriter) answer(said string) []byte {
	if p.status != http.StatusBadRequest || p.call == nil || !p.call.IsCall() {
		return nil
	}
	out := &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: plain.Strip(said)}
	switch {
	case strings.HasPrefix(said, notHandled):
		out = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: " +
			strconv.Quote(clip(plain.Line(p.call.Method), 200))}
	case !strings.HasPrefix(said, notValid):
		return nil
	}
	answer, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: p.call.ID, Error: out})
	if err != nil {
		return nil
	}
	return answer
}

// sdkSays are the beginnings of what the SDK says, with our words for it.
var sdkSays = []struct {
	begins string
	why    error
}{
	{"malformed payload", regie.Errorf(regie.CodeBadRequest, "the body is no message of JSON-RPC 2.0")},
	{"POST requires a non-empty body", regie.Errorf(regie.CodeBadRequest,
		"the request has no body: send a message of JSON-RPC 2.0")},
	{"JSON-RPC batching", regie.Errorf(regie.CodeBadRequest,
		"several messages in one request are not taken in this version of MCP: send each by itself")},
	{"Content-Type must be", regie.Errorf(regie.CodeBadRequest,
		"the body must come as %s: say so in Content-Type", "application/json")},
	{"Accept must contain both", regie.Errorf(regie.CodeBadRequest, "Accept must name %s and %s",
		"application/json", "text/event-stream")},
	{"Accept must contain 'text/event-stream'", regie.Errorf(regie.CodeBadRequest,
		"Accept must name %s", "text/event-stream")},
	{"Bad Request: GET requires", regie.Errorf(regie.CodeBadRequest,
		"say which MCP session is meant, in %s: initialize begins one", sessionHeader)},
	{"Bad Request: DELETE requires", regie.Errorf(regie.CodeBadRequest,
		"say which MCP session is meant, in %s: initialize begins one", sessionHeader)},
	{"Bad Request: Unsupported protocol version", regie.Errorf(regie.CodeBadRequest,
		"the version of MCP in %s is none that is spoken here", "Mcp-Protocol-Version")},
	{"malformed Last-Event-ID", regie.Errorf(regie.CodeBadRequest,
		"%s names no place of a stream that can be told again", "Last-Event-ID")},
	{"stream replay unsupported", regie.Errorf(regie.CodeBadRequest,
		"%s names no place of a stream that can be told again", "Last-Event-ID")},
	{"failed to replay events", regie.Errorf(regie.CodeBadRequest,
		"%s names no place of a stream that can be told again", "Last-Event-ID")},
	{"can't send Last-Event-ID", regie.Errorf(regie.CodeBadRequest, "%s goes with GET", "Last-Event-ID")},
	{"stream ID conflicts", regie.Errorf(regie.CodeConflict, "this stream of the MCP session is open already")},
	{"session is closing", noSession},
}

// why is the error that the SDK means, in our words.
func (p *problemWriter) why(said string) error {
	if p.named && p.status == http.StatusNotFound {
		return noSession
	}
	for i := range sdkSays {
		if strings.HasPrefix(said, sdkSays[i].begins) {
			return sdkSays[i].why
		}
	}
	switch code := codeOf(p.status); code {
	case regie.CodeForbidden:
		return regie.Errorf(code, "the request comes from a page of somebody else's")
	case regie.CodeNoToken:
		return regie.Errorf(code, "the request shows no token, or a wrong one: send it as Authorization: Bearer …")
	case regie.CodeNotFound:
		return noSession
	case regie.CodeNoMethod:
		return regie.Errorf(code, "%s does not take %s", "/mcp", p.method)
	case regie.CodeTooLarge:
		return regie.Errorf(code, "the request is larger than %d bytes", maxBody)
	case regie.CodeInternal:
		return regie.Errorf(code, "the request could not be answered: the log of the server says why")
	default:
		return regie.Errorf(code, "the request is none that MCP has in this place")
	}
}

// codeOf is the stable code of a status that the SDK answers with.
func codeOf(status int) regie.Code {
	switch status {
	case http.StatusForbidden:
		return regie.CodeForbidden
	case http.StatusUnauthorized:
		return regie.CodeNoToken
	case http.StatusNotFound:
		return regie.CodeNotFound
	case http.StatusMethodNotAllowed:
		return regie.CodeNoMethod
	case http.StatusConflict:
		return regie.CodeConflict
	case http.StatusRequestEntityTooLarge:
		return regie.CodeTooLarge
	}
	if status >= http.StatusInternalServerError {
		return regie.CodeInternal
	}
	return regie.CodeBadRequest
}

// badArguments begins what the SDK says of arguments that do not fit the schema of a tool.
const badArguments = `validating "arguments": `

// coded gives errors of arguments, which the SDK finds before a tool is called, the code that those
// of tools have.
func (s *server) coded(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, request)
		called, is := result.(*mcp.CallToolResult)
		if err != nil || !is || called == nil || !called.IsError || len(called.Content) != 1 {
			return result, err
		}
		text, is := called.Content[0].(*mcp.TextContent)
		if !is {
			return result, err
		}
		if why, is := strings.CutPrefix(text.Text, badArguments); is {
			wrong := s.failed(regie.Errorf(regie.CodeBadArguments, "the arguments do not fit the tool: %s", why))
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: wrong.Error()}}},
				nil
		}
		return result, err
	}
}

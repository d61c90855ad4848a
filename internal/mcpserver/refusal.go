package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

// refusal is an error of JSON-RPC with which a message is answered in place of the SDK: in our
// words, and with a code that it should have.
type refusal struct {
	id   jsontext.Value // nil where the message has none that can be told
	code int
	why  error
}

func refused(call *jsonrpc.Request, code int, why error) *refusal {
	id, err := jsonv2.Marshal(call.ID.Raw())
	if err != nil || !call.IsCall() {
		id = nil
	}
	return &refusal{id: id, code: code, why: why}
}

// answer is the refusal as a message.
func (r *refusal) answer(t *text.Printer) []byte {
	id := r.id
	if id == nil {
		id = jsontext.Value("null")
	}
	// a text
	said, _ := jsonv2.Marshal(strings.ToValidUTF8(plain.Strip(t.Error(r.why)), "�") + " (" +
		string(regie.CodeOf(r.why)) + ")")
	return []byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":` + strconv.Itoa(r.code) +
		`,"message":` + string(said) + `}}`)
}

// unclear is what is wrong with a message whoever it is for, nil where nothing is, or where it is
// no JSON at all: a key that stands there twice, of which somebody else may read the other one
// (spec 11.3), and an id that the SDK would answer as another.
func unclear(message []byte) *refusal {
	if _, err := jsontext.NewDecoder(bytes.NewReader(message)).ReadValue(); err != nil {
		syntax, is := errors.AsType[*jsontext.SyntacticError](err)
		if !is || !errors.Is(err, jsontext.ErrDuplicateName) {
			return nil
		}
		out := &refusal{id: onlyID(message), code: jsonrpc.CodeInvalidRequest}
		if strings.HasPrefix(string(syntax.JSONPointer), "/params/") {
			out.code = jsonrpc.CodeInvalidParams
		}
		out.why = regie.Errorf(regie.CodeBadRequest, "the request does not fit at %s: the key stands there twice",
			plain.Line(clip(string(syntax.JSONPointer), 200)))
		return out
	}
	type identified struct {
		ID jsontext.Value `json:"id"`
	}
	several := make([]identified, 1)
	if jsonv2.Unmarshal(message, &several[0]) != nil && jsonv2.Unmarshal(message, &several) != nil {
		return nil
	}
	for i := range several {
		if !tellable(several[i].ID) {
			why := regie.Errorf(regie.CodeBadRequest, "the id of a message is a text or a whole number, not %s",
				clip(string(several[i].ID), 40))
			return &refusal{code: jsonrpc.CodeInvalidRequest, why: why}
		}
	}
	return nil
}

// tellable reports whether the SDK answers an id as it is: of numbers it keeps what a whole one of
// 64 bits holds, and reads it as a float.
func tellable(id jsontext.Value) bool {
	if id.Kind() != '0' {
		return true
	}
	number, err := strconv.ParseFloat(string(id), 64)
	return err == nil && number == math.Trunc(number) && math.Abs(number) < 1<<53
}

// onlyID is the id of a call, nil where it stands there twice, cannot be told, or where the message
// is no call.
func onlyID(message []byte) (id jsontext.Value) {
	d := jsontext.NewDecoder(bytes.NewReader(message), jsontext.AllowDuplicateNames(true))
	if begin, err := d.ReadToken(); err != nil || begin.Kind() != '{' {
		return nil
	}
	calls, ids := false, 0
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		if err != nil {
			return nil
		}
		name := key.String() // before the decoder reads on
		value, err := d.ReadValue()
		if err != nil {
			return nil
		}
		switch name {
		case "method":
			calls = true
		case "id":
			ids++
			id = value.Clone()
		}
	}
	if !calls || ids != 1 || !tellable(id) || id.Kind() != '0' && id.Kind() != '"' {
		return nil
	}
	return id
}

// How a client begins.
const (
	initialize  = "initialize"
	initialized = "notifications/initialized"
)

// untimely is what is wrong with a call at its place in an MCP session, nil where nothing is. The
// SDK would answer it without a code, and log it as an error of ours.
func untimely(call *jsonrpc.Request, begun bool) *refusal {
	switch {
	case !call.IsCall(), call.Method == "ping", call.Method == "server/discover", handshakeless(call):
		return nil
	case call.Method == initialize && begun:
		return refused(call, jsonrpc.CodeInvalidRequest, regie.Errorf(regie.CodeBadRequest,
			"the MCP session has begun: %s comes once", initialize))
	case call.Method != initialize && !begun:
		return refused(call, jsonrpc.CodeInvalidRequest, regie.Errorf(regie.CodeBadRequest, "%s comes before %s",
			initialize, plain.Line(clip(call.Method, 200))))
	}
	return nil
}

// handshakeless reports whether a call is of a version of the protocol that has no handshake: each
// names its version.
func handshakeless(call *jsonrpc.Request) bool {
	var said struct {
		Meta struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	return json.Unmarshal(call.Params, &said) == nil && said.Meta.Version >= withoutRequests
}

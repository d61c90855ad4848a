package compat

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// body reads a request's body.
func body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	tooLarge := &problem{
		status: http.StatusRequestEntityTooLarge, kind: kindInvalid, err: regie.Errorf(regie.CodeTooLarge, "the request has more than %d bytes", maxBody),
	}
	if r.ContentLength > maxBody { // without waiting for it
		return nil, tooLarge
	}
	data, err := whole(http.MaxBytesReader(w, r.Body, maxBody), r.ContentLength, maxBody+1)
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, tooLarge
	case stops(err) != nil: // what has not come then is cut off in time, and is no fault of the client's
		return nil, stops(err)
	case isTimeout(err):
		return nil, &problem{status: http.StatusRequestTimeout, kind: kindInvalid, err: regie.Errorf(regie.CodeRequestTimeout, "the body of the request did not come in time")}
	case err != nil: // the connection's own words name addresses of this machine
		return nil, &problem{status: http.StatusBadRequest, kind: kindInvalid, err: regie.Errorf(regie.CodeBadRequest, "the request ended before its body did")}
	}
	return data, nil
}

// stops is the server's own word for a body that it does not wait for, since it stops; nil: it is another error.
func stops(err error) error {
	if own, is := errors.AsType[*regie.Error](err); is && own.Code == regie.CodeEngineGone {
		return own
	}
	return nil
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// decode reads strict JSON: one value, each key once, UTF-8. What keys there may be says the caller (strays).
func decode(data []byte, into any) error {
	err := jsonv2.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	param := ""
	if meaning, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		param = pointer(meaning.JSONPointer)
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		param = pointer(syntax.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return refused(param, "the key %s stands twice", clip(param))
		}
		return refused("", "the request is no JSON from byte %d on", syntax.ByteOffset)
	}
	if param == "" {
		return refused("", "the request is not a JSON object")
	}
	return refused(param, "%s is not of the type that it has to be", clip(param))
}

// pointer writes a JSON pointer as OpenAI names parameters: messages[0].content.
func pointer(at jsontext.Pointer) string {
	var out strings.Builder
	for token := range at.Tokens() {
		if strings.Trim(token, "0123456789") == "" && out.Len() > 0 {
			out.WriteString("[" + token + "]")
			continue
		}
		if out.Len() > 0 {
			out.WriteByte('.')
		}
		out.WriteString(token)
	}
	return out.String()
}

// Ids that clients are given name what is stored, so that nothing need be looked up for them: a call and its session, a round, its place and its
// session.
const (
	callPrefix     = "call_"
	responsePrefix = "resp_"
)

func callID(session, call regie.ID) string {
	return callPrefix + base64.RawURLEncoding.EncodeToString(append(session[:], call[:]...))
}

// parseCallID reads one of our call ids; ok is false for what another has made.
func parseCallID(text string) (session, call regie.ID, ok bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(text, callPrefix))
	if err != nil || len(data) != 32 || !strings.HasPrefix(text, callPrefix) {
		return session, call, false
	}
	copy(session[:], data)
	copy(call[:], data[16:])
	return session, call, true
}

// responseID names a round; number is how many rounds its session had with it.
func responseID(session, round regie.ID, number int) string {
	data := append(append([]byte{}, session[:]...), round[:]...)
	return responsePrefix + base64.RawURLEncoding.EncodeToString(append(data, byte(number>>16), byte(number>>8), byte(number)))
}

func parseResponseID(text string) (session, round regie.ID, number int, ok bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(text, responsePrefix))
	if err != nil || len(data) != 35 || !strings.HasPrefix(text, responsePrefix) {
		return session, round, 0, false
	}
	copy(session[:], data)
	copy(round[:], data[16:])
	return session, round, int(data[32])<<16 | int(data[33])<<8 | int(data[34]), true
}

// idOf makes an id of words: the same each time.
func idOf(words ...string) (id regie.ID) {
	sum := sha256.Sum256([]byte("regie compat\x00" + strings.Join(words, "\x00")))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUIDv8
	return id
}

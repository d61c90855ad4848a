package compat

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// decode reads strict JSON: one value, each key once, UTF-8. What keys there may be says the caller
// (strays).
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

// checkCase refuses a key that differs from a known one in its case alone. Other unknown keys of
// a content part have no effect: clients echo the parts of many vendors.
func checkCase(rest map[string]jsontext.Value, within string, known ...string) error {
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		for _, name := range known {
			if strings.EqualFold(key, name) {
				param := clip(within + "." + key)
				return refused(param, "%s differs from the key %s only in its capitals: write it in lower case", param,
					name)
			}
		}
	}
	return nil
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

// Ids that clients are given name what is stored, so that nothing need be looked up for them: a
// call and its session, a round, its place and its session.
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
	return responsePrefix + base64.RawURLEncoding.EncodeToString(
		append(data, byte(number>>16), byte(number>>8), byte(number)))
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

// callItemPrefix stands before the id of a response's item that is a call; that of its message
// has messagePrefix.
const callItemPrefix = "fc_"

func messageID(round regie.ID) string { return messagePrefix + round.String() }

func itemID(call *regie.Call) string {
	return callItemPrefix + base64.RawURLEncoding.EncodeToString(append(call.RoundID[:], call.ID[:]...))
}

// parseItemID reads the id of an item; call is zero for the message of a round.
func parseItemID(text string) (round, call regie.ID, ok bool) {
	if id, is := strings.CutPrefix(text, messagePrefix); is {
		round, err := regie.ParseID(id)
		return round, call, err == nil
	}
	both, is := strings.CutPrefix(text, callItemPrefix)
	round, call, ok = parseCallID(callPrefix + both)
	return round, call, ok && is
}

// idOf makes an id of words: the same each time.
func idOf(words ...string) (id regie.ID) {
	sum := sha256.Sum256([]byte("regie compat\x00" + strings.Join(words, "\x00")))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUIDv8
	return id
}

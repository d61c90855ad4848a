package compat

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// head is a request to pass on: its members, with their values byte for byte, and the parameters
// that the proxy reads.
type head struct {
	members       []member
	model         string
	stream        bool
	wantsUsage    bool
	answers, most int
	bounded       string // the parameter that bounds the answer; empty: none
}

type member struct {
	name  string
	value jsontext.Value
}

// readHead reads a strict JSON object with unique keys. It stops at a model that the proxy does not
// serve. After an invalid parameter it still reads the rest.
func readHead(data []byte, passes func(model string) bool) (h head, wrong error) {
	h.answers = 1
	d := jsontext.NewDecoder(bytes.NewBuffer(data)) // which is read where it lies, and not copied
	if first, err := d.ReadToken(); err != nil || first.Kind() != '{' {
		return h, decodeError(err)
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return h, decodeError(err)
		}
		key := name.String() // before the decoder reads on
		value, err := d.ReadValue()
		if err != nil {
			return h, decodeError(err)
		}
		end := int(d.InputOffset())
		h.members = append(h.members, member{key, data[end-len(value) : end]})
		wrong = cmp.Or(wrong, h.takeParameter(key, value))
		if key == "model" && !passes(h.model) {
			return h, wrong
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return h, decodeError(err)
	}
	if len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return h, decodeError(nil)
	}
	return h, wrong
}

// takeParameter looks at one parameter.
func (h *head) takeParameter(key string, value jsontext.Value) (err error) {
	switch key {
	case "model":
		if value.Kind() == '"' {
			err = decodeStrict(value, &h.model)
		}
	case "stream":
		h.stream = value.Kind() == 't'
	case "stream_options":
		var options streamOptions
		if decodeStrict(value, &options) != nil {
			return badParameter(key, "stream_options is an object")
		}
		h.wantsUsage = options.IncludeUsage
	case "n":
		h.answers, err = countOf(key, value)
		h.answers = max(1, h.answers)
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		most, err := countOf(key, value)
		if err != nil || most == 0 {
			return err
		}
		if h.bounded != "" {
			return badParameter(key, "the output limit is given twice")
		}
		h.bounded, h.most = key, most
	}
	return err
}

// countOf reads a number from 1 on; 0 where it is null.
func countOf(key string, value jsontext.Value) (int, error) {
	n, err := strconv.Atoi(string(value))
	if value.Kind() != 'n' && (err != nil || n < 1 || n > 1<<30) {
		return 0, badParameter(key, "%s is not a number that can be requested", truncate(string(value)))
	}
	return n, nil
}

// setMember gives a member another value, or adds it.
func (h *head) setMember(name string, value jsontext.Value) {
	at := slices.IndexFunc(h.members, func(m member) bool { return m.name == name })
	if at < 0 {
		h.members = append(h.members, member{name, value})
		return
	}
	h.members[at].value = value
}

// encodeRequest writes the request as its provider gets it, which has about so many bytes.
func (h *head) encodeRequest(size int) []byte {
	out := append(make([]byte, 0, size+128), '{')
	for i, m := range h.members {
		if i > 0 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, m.name) // of valid text
		out = append(append(out, ':'), m.value...)
	}
	return append(out, '}')
}

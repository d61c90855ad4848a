package compat

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// head is what is looked at of a request that is passed on: where it says it, so that all else goes
// through byte for byte.
type head struct {
	name                  string // of the model
	model, options, bound span   // of the values
	end                   int    // of the last value of the object
	stream                bool
	wantsUsage            bool
	answers, most         int
	temperature           *float64
	bounded               []byte // the parameter that bounds the answer
}

type span struct{ from, to int }

// readHead reads a strict JSON object, each key of which stands once. Where a parameter cannot be
// as it is, all else of the head is read all the same.
func readHead(data []byte) (h head, wrong error) {
	h.answers = 1
	d := jsontext.NewDecoder(bytes.NewBuffer(data)) // which is read where it lies, and not copied
	whole, err := d.ReadValue()
	if err != nil {
		return h, decodeError(err)
	}
	if whole.Kind() != '{' || len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return h, refused("", "the request is not a JSON object")
	}
	d.Reset(bytes.NewBuffer(data))
	_, _ = d.ReadToken() // all of it has been read once
	for d.PeekKind() == '"' {
		name, _ := d.ReadToken()
		key := name.String() // before the decoder reads on
		value, _ := d.ReadValue()
		h.end = int(d.InputOffset())
		wrong = cmp.Or(wrong, h.take(key, value, span{h.end - len(value), h.end}))
	}
	return h, wrong
}

// take looks at one parameter.
func (h *head) take(key string, value jsontext.Value, at span) error {
	number := func() (int, error) {
		n, err := strconv.Atoi(string(value))
		if value.Kind() != 'n' && (err != nil || n < 1 || n > 1<<30) {
			return 0, refused(key, "%s is no number that can be asked for", truncate(string(value)))
		}
		return n, nil
	}
	var err error
	switch key {
	case "model":
		h.model = at
		if value.Kind() == '"' {
			name, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return refused(key, "the model's name cannot be read")
			}
			h.name = string(name)
		}
	case "stream":
		h.stream = value.Kind() == 't'
	case "stream_options":
		h.options = at
		var options streamOptions
		if err := decode(value, &options); err != nil {
			return refused(key, "stream_options is an object")
		}
		h.wantsUsage = options.IncludeUsage
	case "n":
		if h.answers, err = number(); err == nil && h.answers == 0 {
			h.answers = 1
		}
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		if h.most, err = number(); err == nil && h.most > 0 {
			if h.bounded != nil {
				return refused(key, "the answer is bounded twice")
			}
			h.bounded, h.bound = []byte(key), at
		}
	case "temperature":
		if value.Kind() == '0' {
			if t, err := strconv.ParseFloat(string(value), 64); err == nil {
				h.temperature = &t
			}
		}
	}
	return err
}

// rewritten is the request as its provider gets it: the model's own name, the bound of the answer
// where a budget sets one, and the wish for usage in a stream. added says that the client had not
// asked for that.
func (h *head) rewritten(data []byte, model, bound string, longest int, chat bool) (out []byte, added bool) {
	type change struct {
		span
		text []byte
	}
	quoted, err := jsontext.AppendQuote(nil, model)
	if err != nil {
		quoted = []byte(`""`)
	}
	changes := []change{{h.model, quoted}}
	var more []byte
	if longest > 0 {
		if h.bounded != nil {
			changes = append(changes, change{h.bound, strconv.AppendInt(nil, int64(longest), 10)})
		} else {
			more = strconv.AppendInt(append(more, `,"`+bound+`":`...), int64(longest), 10)
		}
	}
	if chat && h.stream && !h.wantsUsage {
		added = true
		if h.options.to > 0 {
			changes = append(changes, change{h.options, []byte(`{"include_usage":true}`)})
		} else {
			more = append(more, `,"stream_options":{"include_usage":true}`...)
		}
	}
	changes = append(changes, change{span{h.end, h.end}, more})
	slices.SortFunc(changes, func(a, b change) int { return a.from - b.from })
	out = make([]byte, 0, len(data)+len(quoted)+len(more)+64)
	at := 0
	for _, c := range changes {
		out = append(append(out, data[at:c.from]...), c.text...)
		at = c.to
	}
	return append(out, data[at:]...), added
}

// cacheKey is a request without what has no part in its answer.
func (h *head) cacheKey(data []byte, model string) regie.Hash {
	out, _ := h.rewritten(data, model, "", 0, false)
	value := jsontext.Value(out)
	if value.Canonicalize() != nil {
		return regie.Hash{}
	}
	return regie.HashOf(value)
}

package compat

import (
	"bytes"
	"encoding/json"
	"slices"
)

// wellEnded are the words with which an answer says that it is whole, by its API.
var wellEnded = map[string][]string{
	APIChat: {"stop"}, APIMessages: {"end_turn", "stop_sequence"},
	APIResponses: {"completed"},
}

// ending is what an answer, or an event of a stream, says of how it ended.
type ending struct {
	Error   json.RawMessage `json:"error"`
	Status  string          `json:"status"`
	Reason  string          `json:"stop_reason"`
	Type    string          `json:"type"`
	Choices []struct {
		Reason string `json:"finish_reason"`
	} `json:"choices"`
}

// endsWell reports whether an answer of an API says of itself that it is whole: what failed, was
// cut or was filtered is an answer for nobody else.
func endsWell(api string, said []byte) bool {
	if said = bytes.TrimSpace(said); bytes.HasPrefix(said, []byte("{")) {
		well, ill := endingOf(api, said)
		return well && !ill
	}
	whole := false
	for line := range bytes.Lines(said) {
		data, is := bytes.CutPrefix(line, []byte("data:"))
		if data = bytes.TrimSpace(data); !is || !bytes.HasPrefix(data, []byte("{")) {
			continue
		}
		well, ill := endingOf(api, data)
		if ill {
			return false
		}
		whole = whole || well
	}
	return whole
}

// endingOf reports whether an answer or an event says that the answer is whole, and whether it says
// that it is not.
func endingOf(api string, object []byte) (well, ill bool) {
	var e ending
	if json.Unmarshal(object, &e) != nil {
		return false, true
	}
	if e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null" {
		return false, true
	}
	words := []string{e.Reason}
	switch {
	case api == APIResponses && e.Type == "response.completed":
		words = []string{unquoted(member(member(object, "response"), "status"))}
	case api == APIResponses && e.Type != "": // an event on the way
		return false, false
	case api == APIResponses:
		words = []string{e.Status}
	case api == APIMessages && e.Type == "message_delta":
		words = []string{unquoted(member(member(object, "delta"), "stop_reason"))}
	case api == APIChat:
		words = nil
		for i := range e.Choices {
			words = append(words, e.Choices[i].Reason)
		}
	}
	for _, word := range words {
		switch {
		case slices.Contains(wellEnded[api], word):
			well = true
		case word != "":
			ill = true
		}
	}
	return well, ill
}

// unquoted is a JSON string's text, "" of anything else.
func unquoted(value []byte) (text string) {
	if len(value) > 0 {
		_ = json.Unmarshal(value, &text) // anything else has none
	}
	return text
}

package compat

import (
	"bytes"
	"encoding/json"
)

// ending is what an answer, or an event of a stream, says of how it ended.
type ending struct {
	Error    json.RawMessage `json:"error"`
	Type     string          `json:"type"`
	Status   string          `json:"status"`      // of a response
	Reason   string          `json:"stop_reason"` // of a message
	Response struct {
		Status string `json:"status"`
	} `json:"response"`
	Delta struct {
		Reason string `json:"stop_reason"`
	} `json:"delta"`
	Choices []struct {
		Reason string `json:"finish_reason"`
	} `json:"choices"`
}

// endsWell reports whether an answer says of itself that it is whole: what failed, was cut or was
// filtered is an answer for no other client. Streams of Chat Completions and Messages end with a
// mark.
func endsWell(api string, answer []byte) bool {
	if answer = bytes.TrimSpace(answer); bytes.HasPrefix(answer, []byte("{")) {
		well, ill := endingOf(answer)
		return well && !ill
	}
	whole, marked := false, api == APIResponses
	for line := range bytes.Lines(answer) {
		data, is := bytes.CutPrefix(line, []byte("data:"))
		if data = bytes.TrimSpace(data); !is || !bytes.HasPrefix(data, []byte("{")) {
			marked = marked || is && string(data) == "[DONE]"
			continue
		}
		well, ill := endingOf(data)
		if ill {
			return false
		}
		whole = whole || well
		marked = marked || bytes.Contains(data, []byte(`"message_stop"`))
	}
	return whole && marked
}

// endingOf reports whether an answer or an event says that the answer is whole, and whether it says
// that it is not.
func endingOf(object []byte) (well, ill bool) {
	var e ending
	if json.Unmarshal(object, &e) != nil || e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null" {
		return false, true
	}
	words := []string{e.Status, e.Reason, e.Response.Status, e.Delta.Reason}
	for i := range e.Choices {
		words = append(words, e.Choices[i].Reason)
	}
	for _, word := range words {
		switch word {
		case "", "in_progress", "queued":
		case "stop", "end_turn", "stop_sequence", "completed":
			well = true
		default:
			ill = true
		}
	}
	return well, ill
}

package provider

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// JoinText returns the text of a turn's parts.
func JoinText(parts []Part) string {
	return join(parts, func(p *Part) bool { return p.Type == regie.PartText })
}

// JoinThinking returns the thinking of a provider in a turn.
func JoinThinking(parts []Part, provider string) string {
	return join(parts, func(p *Part) bool { return p.Type == regie.PartThinking && p.Provider == provider })
}

func join(parts []Part, wanted func(*Part) bool) string {
	if len(parts) == 1 && wanted(&parts[0]) {
		return parts[0].Text
	}
	var text strings.Builder
	for i := range parts {
		if wanted(&parts[i]) {
			text.WriteString(parts[i].Text)
		}
	}
	return text.String()
}

// Calls returns the calls of a turn, in their order.
func Calls(parts []Part) (calls []*Call) {
	for i := range parts {
		if parts[i].Call != nil {
			calls = append(calls, parts[i].Call)
		}
	}
	return calls
}

// Images returns the media of a turn, in their order.
func Images(parts []Part) (images []*Media) {
	for i := range parts {
		if parts[i].Media != nil {
			images = append(images, parts[i].Media)
		}
	}
	return images
}

// CountImages returns how many images turns hold, and their length in bytes.
func CountImages(turns []Turn) (n, bytes int) {
	for i := range turns {
		for _, image := range Images(turns[i].Parts) {
			n++
			bytes += len(image.Data)
		}
	}
	return n, bytes
}

// Object returns a call's arguments for an API that takes an object: unchanged if they are an
// object of strict JSON, else empty. A call with other arguments was not run, and its result says
// why.
func Object(arguments string) []byte {
	value := jsontext.Value(strings.TrimSpace(arguments))
	if value.Kind() != '{' || !value.IsValid() {
		return []byte("{}")
	}
	return value
}

// SummaryMark and SummaryMarkFrench begin the last turn of a request for a summary (spec 3.4).
const (
	SummaryMark       = "[CONTEXT_SUMMARY] This conversation is about to be continued"
	SummaryMarkFrench = "[CONTEXT_SUMMARY] Cette conversation va se poursuivre"
)

// AsksSummary reports whether a thread ends with a request for a summary.
func AsksSummary(turns []Turn) bool {
	if len(turns) == 0 {
		return false
	}
	last := JoinText(turns[len(turns)-1].Parts)
	return strings.HasPrefix(last, SummaryMark) || strings.HasPrefix(last, SummaryMarkFrench)
}

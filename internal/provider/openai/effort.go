package openai

import (
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Each vendor has some of regie.Efforts, under names of its own, and takes the nearest for the
// others.

const (
	// plainEffort is the member that most servers know.
	plainEffort = `"reasoning_effort":"%s"`
	// unthinking tells the templates of local models not to think.
	unthinking = `"chat_template_kwargs":{"enable_thinking":false}`
)

// effortIn returns a function that writes an effort as a vendor's member. It returns off for none
// if off is set, else on with %s replaced by the nearest effort from least to most.
func effortIn(off, on, least, most string) func(model, effort string, tools bool) string {
	return func(_, effort string, _ bool) string {
		switch {
		case effort == "":
			return ""
		case effort == "none" && off != "":
			return off
		case least != "":
			effort = regie.EffortWithin(effort, least, most)
		}
		return strings.ReplaceAll(on, "%s", effort)
	}
}

func effortMember(effort string) string {
	if effort == "" {
		return ""
	}
	return strings.ReplaceAll(plainEffort, "%s", effort)
}

// openAIEffort sets none if the API takes tools in no other way. A configured effort is sent, and
// the API may refuse it.
func openAIEffort(model, effort string, tools bool) string {
	major, minor, known := wire.Generation(model, "gpt-")
	if effort == "" && tools && known && (major > 5 || major == 5 && minor >= 6) {
		effort = "none"
	}
	return effortMember(regie.EffortWithin(effort, "none", "xhigh"))
}

// groqEffort also asks for separate thinking if that is not the default.
func groqEffort(model, effort string, tools bool) string {
	switch {
	case strings.HasPrefix(model, "qwen/"):
		if effort != "" && effort != "none" {
			effort = "default"
		}
		members := effortMember(effort)
		if tools {
			return members
		}
		return strings.TrimSuffix(`"reasoning_format":"parsed",`+members, ",")
	case strings.HasPrefix(model, "openai/gpt-oss"):
		return effortMember(regie.EffortWithin(effort, "low", "high"))
	default:
		return effortMember(effort)
	}
}

// mistralEffort: models have none and high; Magistral models always think.
func mistralEffort(model, effort string, _ bool) string {
	switch {
	case effort == "" || strings.Contains(model, "magistral"):
		return ""
	case effort == "none":
		return effortMember("none")
	default:
		return effortMember("high")
	}
}

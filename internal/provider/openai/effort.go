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
	// unthinking is how templates of local models are told not to think.
	unthinking = `"chat_template_kwargs":{"enable_thinking":false}`
)

// effortIn returns how a vendor is told: with off for none, where there is such a member, else with
// on, in which the nearest effort from least to most stands for %s.
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

// openAIEffort says none where the API takes tools in no other way; what a person asks for is sent,
// and refused in the API's own words.
func openAIEffort(model, effort string, tools bool) string {
	major, minor, known := wire.Generation(model, "gpt-")
	if effort == "" && tools && known && (major > 5 || major == 5 && minor >= 6) {
		effort = "none"
	}
	return effortMember(regie.EffortWithin(effort, "none", "xhigh"))
}

// groqEffort asks for a model's thinking apart from its text too, where that is not the default
// already.
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

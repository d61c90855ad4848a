package openai

import (
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider/wire"
)

// Each vendor has some of regie.Efforts, under names of its own, and takes the nearest for the
// others.

// plainEffort is the member that most servers know.
func plainEffort(_, effort string, _ bool) string { return effortMember(effort) }

func effortMember(effort string) string {
	if effort == "" {
		return ""
	}
	return `"reasoning_effort":"` + effort + `"`
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

func deepSeekEffort(_, effort string, _ bool) string {
	switch effort {
	case "":
		return ""
	case "none":
		return `"thinking":{"type":"disabled"}`
	default:
		return `"thinking":{"type":"enabled"},` + effortMember(effort)
	}
}

// mistralEffort: small and medium models have none and high, large ones what lies between too;
// Magistral models always think.
func mistralEffort(model, effort string, _ bool) string {
	switch {
	case effort == "" || strings.Contains(model, "magistral"):
		return ""
	case strings.Contains(model, "large"):
		if effort == "minimal" {
			effort = "low"
		}
		return effortMember(regie.EffortWithin(effort, "none", "high"))
	case effort == "none":
		return effortMember("none")
	default:
		return effortMember("high")
	}
}

func openRouterEffort(_, effort string, _ bool) string {
	if effort == "" {
		return ""
	}
	return `"reasoning":{"effort":"` + regie.EffortWithin(effort, "none", "xhigh") + `"}`
}

func vllmEffort(_, effort string, _ bool) string {
	if effort == "none" {
		return `"chat_template_kwargs":{"enable_thinking":false}`
	}
	return effortMember(regie.EffortWithin(effort, "low", "high"))
}

func llamaEffort(_, effort string, _ bool) string {
	switch effort {
	case "":
		return ""
	case "none":
		return `"chat_template_kwargs":{"enable_thinking":false}`
	default:
		return `"chat_template_kwargs":{"enable_thinking":true,"reasoning_effort":"` +
			regie.EffortWithin(effort, "low", "high") + `"}`
	}
}

func perplexityEffort(_, effort string, _ bool) string {
	return effortMember(regie.EffortWithin(effort, "minimal", "high"))
}

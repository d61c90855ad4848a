package gemini

import (
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider/wire"
)

// generationOf reads the numbers of a model's name: gemini-3.1-pro-preview, gemini-2.5-flash. Other
// names, such as gemma's, have none.
func generationOf(model string) (major, minor int, known bool) {
	return wire.Generation(strings.TrimPrefix(model, "models/"), "gemini-")
}

// checksSignatures reports whether a model refuses calls without a signature: Gemini 3 and later
// do.
func checksSignatures(model string) bool {
	major, _, known := generationOf(model)
	return known && major >= 3
}

// thinks reports whether a model thinks by default: all from generation 3 on, and those of 2.5
// except lite, which refuses a request for its thoughts.
func thinks(model string) bool {
	major, minor, known := generationOf(model)
	return known && (major >= 3 || major == 2 && minor >= 5 && !strings.Contains(model, "lite"))
}

// ThinkingOf returns the members of thinkingConfig for a model and an effort, one of regie.Efforts
// or empty. It asks for the model's summary of its thoughts if the model thinks. Generation 3 has
// levels (pro lacks the lowest) and always thinks. 2.5 has a budget in tokens, never zero for pro.
// Others have neither.
func ThinkingOf(model, effort string) string {
	const asked = `"includeThoughts":true`
	major, minor, known := generationOf(model)
	pro := strings.Contains(model, "pro")
	switch {
	case known && major >= 3 && effort != "":
		least := "minimal"
		if pro {
			least = "low"
		}
		return asked + `,"thinkingLevel":"` + regie.EffortWithin(effort, least, "high") + `"`
	case known && major == 2 && minor >= 5 && effort != "":
		budget := map[string]int{"none": 0, "minimal": 512, "low": 1024, "medium": 8192}[effort]
		switch effort {
		case "high", "xhigh", "max":
			budget = 24576
		case "none":
			if !pro {
				return `"thinkingBudget":0`
			}
			budget = 128
		}
		return asked + `,"thinkingBudget":` + strconv.Itoa(budget)
	case thinks(model):
		return asked
	default:
		return ""
	}
}

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

// thinks reports whether a model thinks unless it is told not to: all from generation 3 on, and of
// 2.5 all but the small one, which refuses to be asked for thoughts that it does not have.
func thinks(model string) bool {
	major, minor, known := generationOf(model)
	return known && (major >= 3 || major == 2 && minor >= 5 && !strings.Contains(model, "lite"))
}

// ThinkingOf are the members of thinkingConfig for a model and an effort, one of regie.Efforts or
// empty. What a model thinks is asked for, in its own summary, wherever it thinks. Generation 3 has
// levels, of which the pro models lack the lowest, and cannot but think; 2.5 has a budget in
// tokens, which for its pro model is never nothing; others have neither.
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

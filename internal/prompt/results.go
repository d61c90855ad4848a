package prompt

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
)

const (
	maxLines     = 5   // of a result that are shown
	maxLine      = 160 // bytes of one
	maxSteps     = 10  // calls that are told
	shownDigits  = 8   // of a call's id, for /show
	sessionTools = "session."
)

// PlainResults says in plain language what calls came to, a sentence or line of a result each: what
// a person reads where the model finds no fit answer (decision 63).
func PlainResults(calls []regie.Call) []regie.Sentence {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c regie.Call) bool {
		return c.NotRun == regie.NotRunDuplicateInBatch
	})
	out := []regie.Sentence{regie.Say("The model's answer was not fit to be read. These are the results:")}
	for i := range calls[:min(len(calls), maxSteps)] {
		out = append(append(out, regie.Sentence{}), plainResult(&calls[i])...)
	}
	if more := len(calls) - maxSteps; more > 0 {
		out = append(out, regie.Sentence{}, regie.Say("… and %s more steps.", strconv.Itoa(more)))
	}
	return out
}

func plainResult(c *regie.Call) (out []regie.Sentence) {
	name := regie.ToolNameOf(c.Tool)
	switch {
	case c.Error == nil:
		lines, whole := resultLines(c.Result)
		if len(lines) == 0 && whole {
			return []regie.Sentence{regie.Say("%s has succeeded.", name)}
		}
		out = []regie.Sentence{regie.Say("%s has succeeded:", name), {}}
		for _, line := range lines[:min(len(lines), maxLines)] {
			out = append(out, regie.Verbatim("    "+shorten(line, maxLine))) // a block in Markdown
		}
		if len(lines) > maxLines || !whole {
			id := c.ID.String()
			out = append(out, regie.Sentence{}, regie.Say("The rest: /show %s", id[len(id)-shownDigits:]))
		}
		return out
	case c.State == regie.CallUnknown:
		return []regie.Sentence{regie.Say("The outcome of %s is unknown: %s", name, c.Error.Message)}
	case c.State == regie.CallNotRun:
		return []regie.Sentence{regie.Say("%s was not run: %s", name, c.Error.Message)}
	default:
		return []regie.Sentence{regie.Say("%s has failed: %s", name, c.Error.Message)}
	}
}

// resultLines returns a result in lines, of JSON its values by their names; whole is false where it
// is a part of one.
func resultLines(result string) (lines []string, whole bool) {
	var value any
	numbers := json.NewDecoder(strings.NewReader(result))
	numbers.UseNumber() // as they are written
	switch whole = true; {
	case isJSON(result) && numbers.Decode(&value) == nil:
		lines = appendValues(nil, "", value)
	case strings.HasPrefix(result, "{"), strings.HasPrefix(result, "["): // shortened
		whole = false
	default:
		lines = strings.Split(strings.TrimRight(result, "\n"), "\n")
	}
	return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" }), whole
}

// appendValues adds the values of a JSON value, without its ids.
func appendValues(lines []string, name string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if !idKey.MatchString(`"` + key + `":`) {
				lines = appendValues(lines, strings.TrimPrefix(name+" "+key, " "), v[key])
			}
		}
	case []any:
		for _, item := range v {
			lines = appendValues(lines, name, item)
		}
	case nil:
	default:
		lines = append(lines, strings.TrimPrefix(fmt.Sprintf("%s: %v", name, v), ": "))
	}
	return lines
}

package wire

import (
	"strconv"
	"strings"
)

// Reasons reports whether a model reasons before it answers. Generation 4 and earlier and chat
// models do not; an unknown name counts as newer.
func Reasons(model string) bool {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	name = strings.TrimPrefix(name, "ft:")
	for _, old := range []string{"gpt-3", "gpt-4", "chatgpt"} {
		if strings.HasPrefix(name, old) {
			return false
		}
	}
	return !strings.Contains(name, "-chat")
}

// Generation reads the numbers of a model's name: claude-opus-5-5, claude-haiku-4-5-20251001,
// gpt-5.6-terra. Behind a family they stand at once, without one behind any words.
func Generation(model, family string) (major, minor int, known bool) {
	rest, found := strings.CutPrefix(model, family)
	numbers := []int{}
	for _, word := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("-.@:/", r) }) {
		n, err := strconv.Atoi(word)
		if ends := err != nil || n >= 100; ends && (len(numbers) > 0 || family != "") { // a long one is a date
			break
		} else if !ends {
			numbers = append(numbers, n)
		}
	}
	if known = found && len(numbers) > 0; !known {
		return 0, 0, false
	}
	numbers = append(numbers, 0)
	return numbers[0], numbers[1], true
}

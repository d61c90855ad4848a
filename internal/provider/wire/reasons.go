package wire

import "strings"

// Reasons says that a model reasons before it answers. Those of generation 4 and before do not, nor
// do those that are made for talk; what is not known is taken for a newer one.
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

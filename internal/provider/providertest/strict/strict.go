// Package strict validates requests as the strictest server of each API would (invariant 18). Its
// rules are written independently of the codecs, so that a mistake in one shows. It is for tests
// and scripted servers, and starts no goroutine.
package strict

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
)

// decode reads a request as the strictest server would (invariant 18): UTF-8, no key twice, and
// nothing that into does not name. It is for the validators, which know the fields that their
// package writes.
func decode(body []byte, into any) error {
	if !utf8.Valid(body) {
		return errors.New("the request is not UTF-8")
	}
	if err := jsonv2.Unmarshal(body, into, jsonv2.RejectUnknownMembers(true)); err != nil { // refuses duplicate keys
		return fmt.Errorf("the request is no strict JSON of the API: %w", err)
	}
	return nil
}

// checkInput checks the texts to embed by the rules of every API: at least one, not too many, and
// none empty.
func checkInput(texts []string, most int) error {
	if len(texts) == 0 || len(texts) > most {
		return fmt.Errorf("%d texts, of 1 to %d", len(texts), most)
	}
	for i, text := range texts {
		if text == "" {
			return fmt.Errorf("text %d is empty", i)
		}
	}
	return nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

var numbers = regexp.MustCompile(`-(\d{1,2})(?:[.-](\d{1,2}))?(?:[-.@:/]|$)`)

// generation reads the numbers of a model's name that begins with family: gpt-5.6-terra,
// claude-haiku-4-5-20251001. A name without has major 0.
func generation(family, model string) (major, minor int) {
	found := numbers.FindStringSubmatch(model)
	if found == nil || !strings.HasPrefix(strings.TrimPrefix(model, "models/"), family) {
		return 0, 0
	}
	major, _ = strconv.Atoi(found[1]) // digits
	minor, _ = strconv.Atoi(found[2]) // absent: 0
	return major, minor
}

package wire

import (
	"errors"
	"fmt"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
)

// Strict reads a request as the strictest server would (invariant 18): UTF-8, no key twice, and
// nothing that into does not name. It is for the validators, which know the fields that their
// package writes.
func Strict(body []byte, into any) error {
	if !utf8.Valid(body) {
		return errors.New("the request is not UTF-8")
	}
	if err := jsonv2.Unmarshal(body, into, jsonv2.RejectUnknownMembers(true)); err != nil { // refuses duplicate keys
		return fmt.Errorf("the request is no strict JSON of the API: %w", err)
	}
	return nil
}

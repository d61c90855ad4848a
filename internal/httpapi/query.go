package httpapi

import (
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
)

// A struct of parameters has a field for each, of type string, bool, int, int64 or regie.ID, with
// the tags
//
//	query:"name"   as it stands in the address
//	min:"1"        the least number; max:"1000" the greatest
//	enum:"a b"     the words that there are
//	doc:"…"        what it is, for the OpenAPI document

// bind reads parameters into a struct. One that is not declared, stands twice or does not fit is
// refused; an empty one is as one that is not there.
func bind(values url.Values, into any) error {
	fields := reflect.ValueOf(into).Elem()
	kind := fields.Type()
	known := map[string]int{}
	for i := range kind.NumField() {
		known[kind.Field(i).Tag.Get("query")] = i
	}
	for name, given := range values {
		i, ok := known[name]
		if !ok {
			return regie.Errorf(regie.CodeBadRequest, "there is no parameter %q here%s", name, instead(kind))
		}
		if len(given) > 1 {
			return regie.Errorf(regie.CodeBadRequest, "the parameter %q stands there more than once", name)
		}
		if given[0] == "" {
			continue
		}
		if err := set(fields.Field(i), kind.Field(i), given[0]); err != nil {
			return err
		}
	}
	return nil
}

// instead names the parameters that there are.
func instead(kind reflect.Type) string {
	var names []string
	for field := range kind.Fields() {
		names = append(names, field.Tag.Get("query"))
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}

func set(field reflect.Value, as reflect.StructField, text string) error {
	name := as.Tag.Get("query")
	if words := strings.Fields(as.Tag.Get("enum")); len(words) > 0 && !slices.Contains(words, text) {
		return regie.Errorf(regie.CodeBadRequest, "%s must be one of: %s", name, strings.Join(words, ", "))
	}
	if id, ok := reflect.TypeAssert[*regie.ID](field.Addr()); ok {
		var err error
		*id, err = regie.ParseID(text)
		return err
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		switch text {
		case "true", "false":
			field.SetBool(text == "true")
		default:
			return regie.Errorf(regie.CodeBadRequest, "%s must be true or false", name)
		}
	default:
		least, greatest := bounds(as)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least || n > greatest {
			return regie.Errorf(regie.CodeBadRequest, "%s must be a number from %d to %d", name, least, greatest)
		}
		field.SetInt(n)
	}
	return nil
}

// bounds are those of a number; a tag that is none is a mistake of ours, which a test of all
// operations finds.
func bounds(field reflect.StructField) (least, greatest int64) {
	least, greatest = 0, 1<<53 // what a number of JavaScript holds
	if text := field.Tag.Get("min"); text != "" {
		least, _ = strconv.ParseInt(text, 10, 64)
	}
	if text := field.Tag.Get("max"); text != "" {
		greatest, _ = strconv.ParseInt(text, 10, 64)
	}
	return least, greatest
}

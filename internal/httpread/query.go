package httpread

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// A parameter is a field of type string, bool, int, int64, regie.ID or store.Mark with the tags
//
//	query:"name"   its name in the address
//	min:"1"        the least number; max:"1000" the greatest
//	enum:"a b"     the allowed words; of a bool, those for false and true
//	list:"name"    of a store.Mark, the list that it is a place of
//	doc:"…"        its description, for the OpenAPI document

// Parameters returns the fields of a struct that are parameters.
func Parameters(kind reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(kind), func(field reflect.StructField) bool {
		return field.Tag.Get("query") == ""
	})
}

// Bind reads parameters into a struct. It refuses an undeclared, repeated or invalid parameter; an
// empty one counts as absent.
func Bind(values url.Values, into any) error {
	fields := reflect.ValueOf(into).Elem()
	known := map[string]reflect.StructField{}
	var names []string
	for _, field := range Parameters(fields.Type()) {
		names = append(names, field.Tag.Get("query"))
		known[field.Tag.Get("query")] = field
	}
	for name, given := range values {
		field, ok := known[name]
		switch {
		case !ok && len(names) == 0:
			return regie.Errorf(regie.CodeBadRequest, "unknown parameter %q%s", name, "")
		case !ok:
			return regie.Errorf(regie.CodeBadRequest, "unknown parameter %q%s", name,
				": "+strings.Join(names, ", "))
		case len(given) > 1:
			return regie.Errorf(regie.CodeBadRequest, "the parameter %q is repeated", name)
		case given[0] == "":
			continue
		}
		if err := setParameter(fields.FieldByIndex(field.Index), field.Tag, given[0]); err != nil {
			return err
		}
	}
	return nil
}

func setParameter(field reflect.Value, tag reflect.StructTag, text string) (err error) {
	name, words := tag.Get("query"), enumOf(field, tag)
	if len(words) > 0 && !slices.Contains(words, text) {
		return regie.Errorf(regie.CodeBadRequest, "%s must be one of: %s", name, strings.Join(words, ", "))
	}
	switch at := field.Addr().Interface().(type) {
	case *regie.ID:
		*at, err = regie.ParseID(text)
		return err
	case *store.Mark:
		*at, err = store.ParseCursor(tag.Get("list"), text)
		return err
	}
	switch field.Kind() {
	case reflect.String:
		field.SetString(text)
	case reflect.Bool:
		field.SetBool(text == words[1])
	default:
		least, greatest := Bounds(tag)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least || n > greatest {
			return regie.Errorf(regie.CodeBadRequest, "%s must be a number from %d to %d", name, least, greatest)
		}
		field.SetInt(n)
	}
	return nil
}

func enumOf(field reflect.Value, tag reflect.StructTag) []string {
	words := tag.Get("enum")
	if field.Kind() == reflect.Bool {
		words = cmp.Or(words, "false true")
	}
	return strings.Fields(words)
}

// Bounds returns the bounds of a number. A test of all operations finds a tag that is no number.
func Bounds(tag reflect.StructTag) (least, greatest int64) {
	least, greatest = 0, 1<<53 // what a number of JavaScript holds
	if text := tag.Get("min"); text != "" {
		least, _ = strconv.ParseInt(text, 10, 64)
	}
	if text := tag.Get("max"); text != "" {
		greatest, _ = strconv.ParseInt(text, 10, 64)
	}
	return least, greatest
}

// Query writes the parameters of a struct as Bind reads them, without those that are zero.
func Query(from any) url.Values {
	fields, out := reflect.ValueOf(from), url.Values{}
	for _, parameter := range Parameters(fields.Type()) {
		field, tag := fields.FieldByIndex(parameter.Index), parameter.Tag
		if field.IsZero() {
			continue
		}
		text := fmt.Sprint(field.Interface())
		if mark, is := reflect.TypeAssert[store.Mark](field); is {
			text = store.Cursor(tag.Get("list"), mark)
		} else if field.Kind() == reflect.Bool {
			text = enumOf(field, tag)[1]
		}
		out.Set(tag.Get("query"), text)
	}
	return out
}

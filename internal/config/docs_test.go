package config_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie/internal/config"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

var (
	aSource  = regexp.MustCompile(` ?\((?:spec|decision)[^)]*\)`)
	aSubject = regexp.MustCompile(`^\w+ (?:is|are|says|bounds?) `)
	aKey     = regexp.MustCompile(`yaml:"([a-z_]+)`)
)

// readFieldComments returns the comment of each field that a settings file can set, by the name of
// its struct and its key.
func readFieldComments(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	for _, dir := range []string{".", "../.."} {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(node ast.Node) bool {
				spec, ok := node.(*ast.TypeSpec)
				if !ok {
					return true
				}
				if fields, ok := spec.Type.(*ast.StructType); ok {
					for _, field := range fields.Fields.List {
						if field.Tag == nil {
							continue
						}
						if key := aKey.FindStringSubmatch(field.Tag.Value); key != nil {
							comments[spec.Name.Name+"."+key[1]] = strings.TrimSpace(field.Doc.Text() + field.Comment.Text())
						}
					}
				}
				return true
			})
		}
	}
	return comments
}

// describe turns a field's comment into a sentence for people.
func describe(comment string) string {
	text := aSource.ReplaceAllString(strings.Join(strings.Fields(comment), " "), "")
	text = aSubject.ReplaceAllString(text, "")
	return strings.ReplaceAll(strings.ToUpper(text[:min(1, len(text))])+text[min(1, len(text)):], "|", "\\|")
}

// writeKeys writes a row for each key of a schema, then those of the objects in it.
func writeKeys(page *strings.Builder, comments map[string]string, schema *jsonschema.Schema, typ reflect.Type, at string) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	keys := []string{}
	for key := range schema.Properties {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		value := schema.Properties[key]
		kind := value.Type
		if len(value.Enum) > 0 {
			words := []string{}
			for _, word := range value.Enum {
				words = append(words, fmt.Sprint(word))
			}
			kind = strings.Join(words, ", ")
		}
		about := value.Description
		if about == "" {
			about = describe(comments[typ.Name()+"."+key])
		}
		fmt.Fprintf(page, "| `%s` | %s | %s | %s |\n", at+key, kind, strings.Trim(string(value.Default), `"`), about)
	}
	for _, key := range keys {
		value, inner := schema.Properties[key], at+key+"."
		field, ok := fieldByKey(typ, key)
		if !ok { // typ is the value of a map, and key one of its names
			field = typ
		}
		if value.AdditionalProperties != nil && len(value.AdditionalProperties.Properties) > 0 {
			value, inner = value.AdditionalProperties, at+key+".NAME."
		}
		if value.Items != nil {
			value, inner = value.Items, at+key+"[]."
		}
		if len(value.Properties) > 0 {
			writeKeys(page, comments, value, field, inner)
		}
	}
}

// fieldByKey returns the type of the field with a key.
func fieldByKey(typ reflect.Type, key string) (reflect.Type, bool) {
	for field := range typ.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); name == key {
			return field.Type, true
		}
	}
	return nil, false
}

// TestConfigurationPage compares docs/configuration.md with the schema and the comments of the
// fields; -update writes it.
func TestConfigurationPage(t *testing.T) {
	var page strings.Builder
	page.WriteString(introduction + "| key | type | default | meaning |\n|---|---|---|---|\n")
	writeKeys(&page, readFieldComments(t), config.Schema(), reflect.TypeFor[config.File](), "")
	path := filepath.Join("..", "..", "docs", "configuration.md")
	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != page.String() {
		t.Errorf("docs/configuration.md is old (go test ./internal/config -run TestConfigurationPage -update): %v", err)
	}
}

const introduction = "# Settings\n\n" +
	"`~/.config/regie/regie.yaml` (`$XDG_CONFIG_HOME`) overrides `/etc/regie/regie.yaml` key by key; rules and hooks of\n" +
	"both count. `--config` or `REGIE_CONFIG` names one file to be used alone. `regie setup` writes `setup.yaml` beside it,\n" +
	"which counts less. Flags and variables of the environment count most. Unknown keys are refused with their line.\n\n" +
	"```\n" +
	"regie config show --origin      # each value and where it comes from; secrets are not shown\n" +
	"regie config validate           # exit code 1 if a file is not valid\n" +
	"regie config schema             # the JSON Schema, for editors\n" +
	"```\n\nGenerated from the program:\n\n"

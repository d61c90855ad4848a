package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// maxArguments bounds a call's arguments in bytes; maxDepth bounds their nesting (spec 11.3).
const (
	maxArguments = 8 << 20
	maxDepth     = 64
)

// Checked is what the pipeline knows of a call before anything runs (spec 4.2).
type Checked struct {
	// Name is the canonical name of the tool, or a clean form of what the model wrote where there is none.
	Name       string
	Tool       Tool // nil where there is none
	Definition regie.Hash
	// Signature is the hash of the tool and the canonical arguments (decision 8).
	Signature regie.Hash
	// Error says why the call cannot run, with NotRun; both are zero where it can.
	Error  *regie.CallError
	NotRun regie.NotRunCode
}

// Check looks a call's tool up and validates its arguments. It never fails: what a model wrote always gets a name, a signature, and
// either a tool to run or a structured error with the nearest names.
func (r *Registry) Check(name, arguments string) Checked {
	e := r.find(name)
	if e == nil {
		c := Checked{Name: clip(name, 200), NotRun: regie.NotRunOutOfScope}
		c.Signature = signature(c.Name, []byte(arguments))
		c.Error = &regie.CallError{Code: regie.CodeUnknownTool, Message: fmt.Sprintf("there is no tool %q here", c.Name), Retryable: true}
		if near := r.Nearest(name); len(near) > 0 {
			c.Error.Hint = "did you mean " + strings.Join(near, ", ") + "?"
		}
		return c
	}
	c := Checked{Name: e.definition.Name, Tool: e.tool, Definition: e.hash}
	canonical, problem := e.validate(arguments)
	c.Signature = signature(c.Name, canonical)
	if problem != nil {
		c.Error, c.NotRun = problem, regie.NotRunInvalid
	}
	return c
}

func signature(name string, arguments []byte) regie.Hash {
	return regie.HashOf(append([]byte(name+"\x00"), arguments...))
}

// validate returns the canonical arguments (RFC 8785), or the raw ones with what is wrong with them.
func (e *entry) validate(arguments string) ([]byte, *regie.CallError) {
	if arguments == "" {
		arguments = "{}"
	}
	raw := []byte(arguments)
	if len(raw) > maxArguments {
		return raw, invalid("", fmt.Sprintf("the arguments have %d bytes, at most %d are allowed", len(raw), maxArguments))
	}
	canonical := jsontext.Value(append([]byte(nil), raw...))
	if tooDeep(raw) {
		return raw, invalid("", fmt.Sprintf("the arguments are nested deeper than %d levels", maxDepth))
	}
	if err := canonical.Canonicalize(); err != nil {
		return raw, invalid("", "the arguments are not one strict JSON value: "+syntax(err))
	}
	if canonical.Kind() != '{' {
		return canonical, invalid("", "the arguments must be a JSON object")
	}
	var value map[string]any
	if err := json.Unmarshal(canonical, &value); err != nil {
		return canonical, invalid("", "the arguments cannot be read: "+err.Error())
	}
	for name := range value {
		if !e.knows(name) && len(e.properties) > 0 {
			problem := invalid(name, fmt.Sprintf("there is no parameter %q; the parameters are %s", clip(name, 60), strings.Join(e.properties, ", ")))
			if near := nearest(name, e.properties); len(near) > 0 {
				problem.Hint = "did you mean " + strings.Join(near, ", ") + "?"
			}
			return canonical, problem
		}
	}
	if err := e.schema.Validate(value); err != nil {
		return canonical, invalid(culprit(err, e.properties), clip("the arguments do not fit the tool: "+lastCause(err), 500))
	}
	return canonical, nil
}

func (e *entry) knows(name string) bool {
	for _, property := range e.properties {
		if property == name {
			return true
		}
	}
	return false
}

func invalid(param, message string) *regie.CallError {
	return &regie.CallError{Code: regie.CodeBadArguments, Message: message, Param: clip(param, 60), Retryable: true}
}

// tooDeep reports nesting beyond the bound without reading the values: strings are skipped, brackets counted.
func tooDeep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

func syntax(err error) string {
	var bad *jsontext.SyntacticError
	if errors.As(err, &bad) && bad.Err != nil {
		return fmt.Sprintf("%v at byte %d", bad.Err, bad.ByteOffset)
	}
	return err.Error()
}

// lastCause drops the chain of schema locations that the validator puts before what is wrong.
func lastCause(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// culprit finds the parameter that a validation error speaks of.
func culprit(err error, properties []string) string {
	text := err.Error()
	for _, property := range properties {
		if strings.Contains(text, "/properties/"+property) || strings.Contains(text, `"`+property+`"`) {
			return property
		}
	}
	return ""
}

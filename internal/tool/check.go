package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

// maxArguments bounds a call's arguments in bytes; maxDepth bounds their nesting (spec 11.3).
const (
	maxArguments = 1 << 20
	maxDepth     = 64
)

// Checked is what the pipeline knows of a call before anything runs (spec 4.2).
type Checked struct {
	// Name is the canonical name of the tool, or a sanitized form of the model's for an unknown
	// one.
	Name       string
	Tool       Tool // nil where there is none
	Definition regie.Hash
	// Arguments are in canonical form (RFC 8785), or as they came where they are not strict JSON.
	Arguments json.RawMessage
	// Signature is the hash of the tool and those arguments (decision 8).
	Signature regie.Hash
	// Asks says that the model itself asks for a person's check (decision 40).
	Asks bool
	// Error says why the call cannot run, with NotRun; both are zero where it can.
	Error  *regie.CallError
	NotRun regie.NotRunCode
}

// Check looks a call's tool up and validates its arguments (spec 4.2). It never fails: what a model
// wrote always gets a name, a signature, and either a tool to run or a structured error with the
// nearest names.
func (r *Registry) Check(name, arguments string) Checked {
	canonical, problem := canonicalJSON(arguments)
	c := Checked{Arguments: canonical}
	e := r.findEntry(name)
	if e == nil {
		c.Name, c.NotRun = cleanText(name, maxCanonicalName), regie.NotRunOutOfScope
		c.Signature = signCall(c.Name, canonical)
		if away := r.Away(name); away != nil {
			c.Error = NotThere(away)
			return c
		}
		if outside := r.findOutside(name); outside != "" {
			c.Error = &regie.CallError{
				Code:    regie.Code(regie.NotRunOutOfScope),
				Message: fmt.Sprintf("the tool %s is outside of what this agent may call: nothing was run", outside),
				Hint:    "do without it, or say that it is needed",
			}
			return c
		}
		c.Error = &regie.CallError{Code: regie.CodeUnknownTool, Message: fmt.Sprintf("there is no tool %q here",
			c.Name), Hint: didYouMean(r.Nearest(name))}
		return c
	}
	c.Name, c.Tool, c.Definition = e.definition.Name, e.tool, e.hash
	canonical, c.Asks = e.takeFlag(canonical)
	c.Arguments = canonical
	c.Signature = signCall(c.Name, canonical)
	if problem == nil {
		problem = e.checkSchema(canonical)
	}
	if problem != nil {
		c.Error, c.NotRun = problem, regie.NotRunInvalid
	}
	return c
}

// NotThere is the error of a call to a toolkit that is down: nothing of it was run.
func NotThere(away error) *regie.CallError {
	return &regie.CallError{
		Code: regie.CodeServerDown, Message: cleanText(away.Error()+": nothing was run", maxMessage), Retryable: true,
		Hint: "do without it, or say that it is missing; it is tried again, and its tools come with a later message",
	}
}

// signCall separates name and arguments by a NUL, which no name holds.
func signCall(name string, arguments []byte) regie.Hash {
	data := make([]byte, 0, len(name)+1+len(arguments))
	data = append(append(append(data, name...), 0), arguments...)
	return regie.HashOf(data)
}

// canonicalJSON returns the canonical form of a strict JSON object (RFC 8785), or the raw bytes
// with what is wrong with them. Some models send nothing where a tool has no parameters (spec
// 12.6).
func canonicalJSON(arguments string) ([]byte, *regie.CallError) {
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	raw := []byte(arguments)
	if len(raw) > maxArguments {
		return raw, invalidParameter("", fmt.Sprintf("the arguments have %d bytes, at most %d are allowed", len(raw),
			maxArguments))
	}
	if problem := findHidden(raw); problem != "" {
		return raw, invalidParameter("", problem)
	}
	canonical := jsontext.Value(slices.Clone(raw))
	if err := canonical.Canonicalize(); err != nil {
		return raw, invalidParameter("", "the arguments are not one strict JSON value: "+syntaxError(err))
	}
	if canonical.Kind() != '{' {
		return canonical, invalidParameter("", "the arguments must be a JSON object")
	}
	return canonical, nil
}

// checkSchema compares canonical arguments with the tool's schema.
func (e *entry) checkSchema(canonical []byte) *regie.CallError {
	var value map[string]any
	if err := jsonv2.Unmarshal(canonical, &value); err != nil {
		return invalidParameter("", sanitize.Clip("the arguments cannot be read: "+err.Error(), 500))
	}
	if e.closed {
		for name := range value {
			if _, known := slices.BinarySearch(e.properties, name); !known {
				return e.unknownParameter(value)
			}
		}
	}
	if err := e.schema.Validate(value); err != nil {
		return e.explainMisfit(err, value)
	}
	return nil
}

// unknownParameter names the first parameter, by name, that the tool does not have.
func (e *entry) unknownParameter(value map[string]any) *regie.CallError {
	var unknown []string
	for name := range value {
		if _, known := slices.BinarySearch(e.properties, name); !known {
			unknown = append(unknown, name)
		}
	}
	name := slices.Min(unknown)
	known := "the tool has none"
	if len(e.properties) > 0 {
		known = "the parameters are " + strings.Join(e.properties, ", ")
	}
	problem := invalidParameter(name, sanitize.Clip(fmt.Sprintf("there is no parameter %q; %s", sanitize.Clip(name, 60),
		known), 1000))
	problem.Hint = didYouMean(nearestNames(name, e.properties))
	return problem
}

// explainMisfit says which parameter does not fit, what it should be, and why.
func (e *entry) explainMisfit(err error, value map[string]any) *regie.CallError {
	for _, name := range e.source.Required {
		if _, ok := value[name]; !ok {
			return invalidParameter(name, fmt.Sprintf("the parameter %q is missing%s", sanitize.Clip(name, 60),
				e.describeExpected(name)))
		}
	}
	name, cause := faultyParameter(err, e.properties), sanitize.Clip(lastCause(err), 300)
	if name == "" {
		return invalidParameter("", "the arguments do not fit the tool: "+cause)
	}
	return invalidParameter(name, fmt.Sprintf("the parameter %q does not fit%s: %s", name,
		e.describeExpected(name), cause))
}

// describeExpected describes what a parameter must be.
func (e *entry) describeExpected(name string) string {
	property := e.source.Properties[name]
	switch {
	case property == nil:
		return ""
	case len(property.Enum) > 0:
		choices := make([]string, len(property.Enum))
		for i, choice := range property.Enum {
			choices[i] = fmt.Sprint(choice)
		}
		return sanitize.Clip("; it must be one of "+strings.Join(choices, ", "), 300)
	case property.Type == "array" && property.Items != nil && len(property.Items.Properties) > 0:
		required, rest := slices.Sorted(slices.Values(property.Items.Required)),
			slices.Sorted(maps.Keys(property.Items.Properties))
		rest = slices.DeleteFunc(rest, func(name string) bool { return slices.Contains(required, name) })
		said := "; it must be an array of objects with " + strings.Join(required, ", ")
		if len(rest) > 0 {
			said += " and, where needed, " + strings.Join(rest, ", ")
		}
		return sanitize.Clip(said, 300)
	case property.Type != "":
		return "; it must be of type " + property.Type
	case len(property.Types) > 0:
		return "; it must be of type " + strings.Join(property.Types, " or ")
	default:
		return ""
	}
}

// invalidParameter returns an error that the same arguments would meet again.
func invalidParameter(param, message string) *regie.CallError {
	return &regie.CallError{
		Code: regie.CodeBadArguments, Message: cleanText(message, 2000),
		Param: cleanText(param, 60),
	}
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(names, ", ") + "?"
}

// findHidden looks for what canonical JSON would hide, without reading the values: nesting beyond
// the bound, and numbers that a float64 does not hold. Two calls with different such numbers would
// share a canonical form, and so an approval.
func findHidden(data []byte) string {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			i = endOfString(data, i)
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Sprintf("the arguments are nested deeper than %d levels", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(data) && strings.IndexByte("0123456789+-.eE", data[end]) >= 0 {
				end++
			}
			if number := string(data[i:end]); !isExact(number) {
				return fmt.Sprintf("the number %s cannot be held exactly: write it as text", sanitize.Clip(number, 60))
			}
			i = end - 1
		}
	}
	return ""
}

// endOfString returns the index of the quote that closes the string opened at start.
func endOfString(data []byte, start int) int {
	for i := start + 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(data)
}

// isExact reports whether a float64 keeps an integer's digits, and does not overflow.
func isExact(number string) bool {
	fraction := strings.ContainsAny(number, ".eE")
	if len(number) <= 15 && !fraction {
		return true
	}
	f, err := strconv.ParseFloat(number, 64)
	if errors.Is(err, strconv.ErrRange) {
		return false
	}
	// malformed ones are found by the parser
	return err != nil || fraction || strconv.FormatFloat(f, 'f', -1, 64) == number
}

func syntaxError(err error) string {
	var bad *jsontext.SyntacticError
	if errors.As(err, &bad) && bad.Err != nil {
		return sanitize.Clip(fmt.Sprintf("%v at byte %d", bad.Err, bad.ByteOffset), 300)
	}
	return sanitize.Clip(err.Error(), 300)
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

// faultyParameter finds the parameter that a validation error speaks of: the validator names the
// place in the schema before the cause.
func faultyParameter(err error, properties []string) string {
	place := strings.TrimSuffix(err.Error(), lastCause(err))
	for _, property := range properties {
		at := "/properties/" + property
		if strings.Contains(place, at+":") || strings.Contains(place, at+"/") {
			return property
		}
	}
	return ""
}

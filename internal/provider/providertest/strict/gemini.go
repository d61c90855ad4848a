package strict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

var geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

type geminiRequest struct {
	System   *geminiContent  `json:"systemInstruction"`
	Contents []geminiContent `json:"contents"`
	Tools    []struct {
		Functions []struct {
			Name        string         `json:"name"`
			Description string         `json:"description"`
			Schema      jsontext.Value `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig *struct {
		Calling struct {
			Mode    string   `json:"mode"`
			Allowed []string `json:"allowedFunctionNames"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	Generation struct {
		MaxOutput   int      `json:"maxOutputTokens"`
		Temperature *float64 `json:"temperature"`
		Thinking    *struct {
			Include bool   `json:"includeThoughts"`
			Level   string `json:"thinkingLevel"`
			Budget  *int   `json:"thinkingBudget"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text      *string         `json:"text"`
	Call      *geminiCall     `json:"functionCall"`
	Response  *geminiResponse `json:"functionResponse"`
	Signature string          `json:"thoughtSignature"`
	Inline    *struct {
		Type string `json:"mimeType"`
		Data string `json:"data"`
	} `json:"inlineData"`
}

type geminiCall struct {
	ID   string         `json:"id"`
	Name string         `json:"name"`
	Args jsontext.Value `json:"args"`
}

type geminiResponse struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	Response jsontext.Value `json:"response"`
}

// Gemini returns the error of a strict generateContent of that model for a request (invariant 18).
// Tests run every prompt through it. It knows the fields that the codec writes and refuses others.
func Gemini(modelName string, body []byte) error {
	var r geminiRequest
	if err := decode(body, &r); err != nil {
		return err
	}
	switch {
	case r.Generation.MaxOutput <= 0:
		return fmt.Errorf("the output is not bounded")
	case r.Generation.Temperature != nil && (*r.Generation.Temperature < 0 || *r.Generation.Temperature > 2):
		return fmt.Errorf("the temperature %v is not between 0 and 2", *r.Generation.Temperature)
	case r.Generation.Thinking != nil:
		if err := r.thinking(modelName); err != nil {
			return err
		}
	}
	if len(r.Contents) == 0 {
		return fmt.Errorf("there are no contents")
	}
	if r.System != nil {
		if len(r.System.Parts) == 0 {
			return fmt.Errorf("systemInstruction: no parts")
		}
		for i := range r.System.Parts {
			if p := &r.System.Parts[i]; p.Text == nil || *p.Text == "" || p.Call != nil || p.Response != nil {
				return fmt.Errorf("systemInstruction: part %d is no text, or an empty one", i)
			}
		}
	}
	if err := r.tools(); err != nil {
		return err
	}
	if err := r.thread(); err != nil {
		return err
	}
	if geminiSigns(modelName) {
		return r.signatures()
	}
	return nil
}

// thinking checks the thinking config against the model's capabilities.
func (r *geminiRequest) thinking(modelName string) error {
	t := r.Generation.Thinking
	major, minor := generation("gemini-", modelName)
	if major == 2 && minor < 5 {
		major = 0
	}
	off := t.Budget != nil && *t.Budget == 0
	switch {
	case major < 2:
		return fmt.Errorf("thinking is not supported by this model")
	case t.Include && (off || t.Budget == nil && !geminiThinks(modelName)):
		return fmt.Errorf("thinking_config.include_thoughts is only enabled when thinking is enabled")
	case major >= 3 && t.Budget != nil || major == 2 && t.Level != "":
		return fmt.Errorf("a thinking level is for generation 3, a thinking budget for 2.5")
	case t.Level != "" && !slices.Contains([]string{"minimal", "low", "medium", "high"}, t.Level),
		t.Level == "minimal" && strings.Contains(modelName, "pro"):
		return fmt.Errorf("the thinking level %q", t.Level)
	case t.Budget != nil && (*t.Budget < 0 || *t.Budget > 24576), off && strings.Contains(modelName, "pro"):
		return fmt.Errorf("the thinking budget %d", *t.Budget)
	default:
		return nil
	}
}

func (r *geminiRequest) tools() error {
	names := map[string]bool{}
	for i := range r.Tools {
		if len(r.Tools[i].Functions) == 0 {
			return fmt.Errorf("tool %d: no functionDeclarations", i)
		}
		for _, f := range r.Tools[i].Functions {
			if !geminiName.MatchString(f.Name) || names[f.Name] {
				return fmt.Errorf(
					"the function %q has a malformed name (it begins with a letter or _, at most %d) or is declared twice", f.Name, 64)
			}
			names[f.Name] = true
			if f.Description == "" {
				return fmt.Errorf("function %s: no description", f.Name)
			}
			var schema struct {
				Type string `json:"type"`
			}
			if f.Schema.Kind() != '{' || json.Unmarshal(f.Schema, &schema) != nil || schema.Type != "object" {
				return fmt.Errorf("function %s: the schema is not of type object", f.Name)
			}
			var decoded any
			_ = json.Unmarshal(f.Schema, &decoded) // an object, see above
			if key := refusedIn(decoded, false); key != "" {
				return fmt.Errorf("function %s: unknown name %q in its schema", f.Name, key)
			}
		}
	}
	if r.ToolConfig != nil {
		switch mode := r.ToolConfig.Calling.Mode; {
		case len(names) == 0:
			return fmt.Errorf("toolConfig without tools")
		case mode != "AUTO" && mode != "ANY" && mode != "NONE":
			return fmt.Errorf("functionCallingConfig: the mode %q", mode)
		}
	}
	return nil
}

// thread checks order and pairing.
func (r *geminiRequest) thread() error {
	var open []*geminiCall // calls of the content before
	before := geminiNone
	for i := range r.Contents {
		c := &r.Contents[i]
		kind, calls, err := c.kind()
		if err != nil {
			return fmt.Errorf("content %d: %w", i, err)
		}
		switch {
		case kind == geminiResponses && len(open) == 0:
			return fmt.Errorf(
				"content %d: ensure that function response turn comes immediately after a function call turn", i)
		case kind != geminiResponses && len(open) > 0:
			return fmt.Errorf("content %d: %d function calls have no response directly after them", i, len(open))
		case kind == geminiModel && (before == geminiNone || before == geminiModel):
			return fmt.Errorf("content %d: a model turn comes after a user turn or a function response turn", i)
		case kind == geminiText && before == geminiText:
			return fmt.Errorf("content %d: two turns of the user in a row", i)
		case kind == geminiResponses:
			if err := c.answers(open); err != nil {
				return fmt.Errorf("content %d: %w", i, err)
			}
		}
		before, open = kind, calls
	}
	switch {
	case len(open) > 0:
		return fmt.Errorf("%d function calls have no response", len(open))
	case before == geminiModel:
		return fmt.Errorf("requests ending with a model turn are not supported")
	}
	return nil
}

// kind returns a content's kind and its calls.
func (c *geminiContent) kind() (geminiKind, []*geminiCall, error) {
	if len(c.Parts) == 0 {
		return geminiNone, nil, fmt.Errorf("it must include at least one parts field")
	}
	var calls []*geminiCall
	texts, answers := 0, 0
	seen := map[string]bool{}
	for i := range c.Parts {
		p := &c.Parts[i]
		data := 0
		if p.Text != nil {
			data++
			texts++
			if *p.Text == "" && p.Signature == "" {
				return geminiNone, nil, fmt.Errorf("part %d: required oneof field data must have one initialized field", i)
			}
		}
		if p.Call != nil {
			data++
			calls = append(calls, p.Call)
			if !geminiName.MatchString(p.Call.Name) || p.Call.Args.Kind() != '{' {
				return geminiNone, nil, fmt.Errorf("part %d: the functionCall of %q is malformed", i, p.Call.Name)
			}
			if p.Call.ID != "" && seen[p.Call.ID] {
				return geminiNone, nil, fmt.Errorf("part %d: the id %s of a functionCall repeats", i, p.Call.ID)
			}
			seen[p.Call.ID] = true
		}
		if p.Inline != nil {
			data++
			texts++ // no response stands beside it
			if err := checkImage(p.Inline.Type, p.Inline.Data); err != nil || c.Role != "user" {
				return geminiNone, nil, fmt.Errorf("part %d: an image of the %s: %w", i, c.Role, err)
			}
		}
		if p.Response != nil {
			data++
			answers++
			if p.Response.Response.Kind() != '{' {
				return geminiNone, nil, fmt.Errorf("part %d: the response of %q is no object", i, p.Response.Name)
			}
		}
		switch {
		case data != 1:
			return geminiNone, nil, fmt.Errorf("part %d: %d kinds of data, exactly one is needed", i, data)
		case p.Signature != "" && c.Role != "model":
			return geminiNone, nil, fmt.Errorf("part %d: a thought signature that is not the model's", i)
		}
	}
	switch {
	case c.Role == "model" && answers == 0:
		return geminiModel, calls, nil
	case c.Role == "user" && len(calls) == 0 && answers == 0:
		return geminiText, nil, nil
	case c.Role == "user" && len(calls) == 0 && texts == 0:
		return geminiResponses, nil, nil
	case c.Role == "user" && len(calls) == 0:
		return geminiNone, nil, fmt.Errorf("function responses beside other parts")
	default:
		return geminiNone, nil, fmt.Errorf("the role %q with %d calls and %d responses", c.Role, len(calls), answers)
	}
}

// answers compares responses with the calls before them.
func (c *geminiContent) answers(open []*geminiCall) error {
	if len(c.Parts) != len(open) {
		return fmt.Errorf(
			"the number of function response parts, %d, is not equal to the number of function call parts of the function call turn, %d", len(c.Parts), len(open))
	}
	for i, call := range open {
		if answer := c.Parts[i].Response; answer.Name != call.Name || answer.ID != call.ID {
			return fmt.Errorf("part %d: the response of %q %q, expected %q %q", i, answer.Name,
				answer.ID, call.Name, call.ID)
		}
	}
	return nil
}

// signatures checks the steps since the person last spoke: the first call of each has its
// signature.
func (r *geminiRequest) signatures() error {
	for i := len(r.Contents) - 1; i >= 0; i-- {
		c := &r.Contents[i]
		if c.Role == "user" && c.Parts[0].Text != nil {
			return nil
		}
		for j := range c.Parts {
			if c.Parts[j].Call == nil {
				continue
			}
			if c.Parts[j].Signature == "" {
				return fmt.Errorf("content %d: function call %q is missing a thought_signature", i,
					c.Parts[j].Call.Name)
			}
			break
		}
	}
	return nil
}

// geminiKind is a kind of content.
type geminiKind string

const (
	geminiNone      geminiKind = ""
	geminiText      geminiKind = "text"
	geminiResponses geminiKind = "responses" // results without text: the API misreads results next to text
	geminiModel     geminiKind = "model"
)

// geminiSigns reports whether a model refuses calls without a signature.
func geminiSigns(model string) bool {
	major, _ := generation("gemini-", model)
	return major >= 3
}

// geminiThinks reports whether a model thinks by default.
func geminiThinks(model string) bool {
	major, minor := generation("gemini-", model)
	return major >= 3 || major == 2 && minor >= 5 && !strings.Contains(model, "lite")
}

// refusedIn returns a keyword in this schema that the API always refuses, or "". named says that
// the keys of v are names of properties or definitions.
func refusedIn(v any, named bool) (found string) {
	if list, ok := v.([]any); ok {
		for _, inner := range list {
			found = cmp.Or(found, refusedIn(inner, false))
		}
	}
	members, _ := v.(map[string]any)
	for key, inner := range members {
		switch {
		case !named && (key == "$schema" || key == "additionalProperties"):
			return key
		case !named && slices.Contains([]string{"default", "const", "enum", "examples"}, key): // data
		default:
			names := []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
			found = cmp.Or(found, refusedIn(inner, !named && slices.Contains(names, key)))
		}
	}
	return found
}

// GeminiEmbed is the strict validator of a request to embed, sent to the path of a model.
func GeminiEmbed(model string, body []byte) error {
	var r struct {
		Requests []struct {
			Model   string `json:"model"`
			Content struct {
				Parts []struct {
					Text string `json:"text"`
				} `json:"parts"`
			} `json:"content"`
			Task       string `json:"taskType"`
			Dimensions *int   `json:"outputDimensionality"`
		} `json:"requests"`
	}
	if err := decode(body, &r); err != nil {
		return err
	}
	var texts []string
	for i := range r.Requests {
		in := &r.Requests[i]
		switch second := strings.HasPrefix(model, "gemini-embedding-2"); {
		case in.Model != "models/"+model:
			return fmt.Errorf("request %d is for %q, sent to %q", i, in.Model, model)
		case len(in.Content.Parts) != 1:
			return fmt.Errorf("request %d has %d parts, which are embedded as one", i, len(in.Content.Parts))
		case second == (in.Task != "") || !second && in.Task != "RETRIEVAL_QUERY" && in.Task != "RETRIEVAL_DOCUMENT":
			return fmt.Errorf("request %d has the task %q", i, in.Task)
		case in.Dimensions != nil && *in.Dimensions < 1:
			return fmt.Errorf("%d dimensions", *in.Dimensions)
		}
		texts = append(texts, in.Content.Parts[0].Text)
	}
	return checkInput(texts, 100)
}

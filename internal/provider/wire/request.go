package wire

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// GrowingBody is a request body that only grows: each turn is encoded once, and the end is put on
// only for sending (decision 31). It is used by one goroutine.
type GrowingBody struct {
	text []byte
	// Tail is the end of all further requests.
	Tail provider.Tail
	// Close returns the end of the body. It returns new bytes at each call: the transport may still
	// read those of the call before.
	Close  func() []byte
	digest Digest
}

// AppendImage is Digest.AppendImage.
func (r *GrowingBody) AppendImage(b []byte, prefix string, image *provider.Media) []byte {
	return r.digest.AppendImage(b, prefix, image)
}

// AppendDataURL writes an image as a JSON string with a data URL.
func (r *GrowingBody) AppendDataURL(b []byte, image *provider.Media) []byte {
	return append(r.AppendImage(b, `"data:`+image.Type+`;base64,`, image), '"')
}

// Add adds what add appends to the slice that it is given. It must write only behind that: the
// transport may still read the bytes of the call before.
func (r *GrowingBody) Add(add func(b []byte) []byte) { r.text = add(r.text) }

// EndWith implements provider.Conversation.
func (r *GrowingBody) EndWith(tail provider.Tail) { r.Tail = tail }

// Request implements provider.Conversation.
func (r *GrowingBody) Request() (regie.Hash, int) { return r.digest.Sum(nil, r.text, r.Close()) }

// Body implements provider.Shower. It changes nothing: the same turns give the same bytes.
func (r *GrowingBody) Body() []byte { return slices.Concat(r.Whole()...) }

// Whole returns the body in pieces, which are not copied.
func (r *GrowingBody) Whole() [][]byte { return [][]byte{r.text, r.Close()} }

// CheckHead returns CodeNoModel and CodeBadRequest for a head that no API takes. whom names the
// vendor or the server.
func CheckHead(head *provider.Head, whom string) error {
	switch {
	case head.Model == "":
		return regie.Errorf(regie.CodeNoModel, "no model is named for %s", whom)
	case head.MaxOutput <= 0:
		return regie.Errorf(regie.CodeBadRequest, "a request must limit its output")
	}
	return nil
}

// AppendTemperature writes the temperature, at most most, as a member behind another one: the
// tail's before the head's. It follows the thread, which so keeps its bytes.
func AppendTemperature(b []byte, head *float64, tail provider.Tail, most float64) []byte {
	if tail.Temperature != nil {
		head = tail.Temperature
	}
	if head == nil {
		return b
	}
	return strconv.AppendFloat(append(b, `,"temperature":`...), min(*head, most), 'g', -1, 64)
}

// Levels returns the prompt levels of a head that say something.
func Levels(head *provider.Head) []string {
	return slices.DeleteFunc([]string{head.Level1, head.Level2}, Blank)
}

// AppendList writes a JSON list.
func AppendList[T any](b []byte, list []T, appendItem func(b []byte, item T) []byte) []byte {
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendItem(b, item)
	}
	return append(b, ']')
}

// AppendTools writes the declarations of tools as a JSON list. open precedes each name, schema
// precedes its parameters, and end follows them. refused are keys that the API refuses at the top
// of a schema.
func AppendTools(b []byte, tools []provider.Tool, open, schema, end string, refused ...string) []byte {
	return AppendList(b, tools, func(b []byte, t provider.Tool) []byte {
		b = AppendString(append(b, open...), t.Name)
		b = AppendString(append(b, `,"description":`...), t.Description)
		return append(append(append(b, schema...), objectSchema(t.Parameters, refused)...), end...)
	})
}

// AppendFunctions writes the declarations of tools as the member "tools", in the form that Chat
// Completions made common: behind a comma, and the same for all servers of one kind.
func AppendFunctions(tools []provider.Tool) []byte {
	return AppendTools([]byte(`,"tools":`), tools, `{"type":"function","function":{"name":`, `,"parameters":`, "}}")
}

// Opaque encodes a part's data for its vendor.
func Opaque(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil { // strings always encode
		return nil
	}
	return data
}

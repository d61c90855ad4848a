package httpread

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/regie-run/regie"
)

// TestBody has each end that a body can have told by its code.
func TestBody(t *testing.T) {
	stopping := regie.Errorf(regie.CodeEngineGone, "the server stops")
	for name, test := range map[string]struct {
		body     io.Reader
		length   int64
		encoding string
		code     regie.Code
	}{
		"whole":               {strings.NewReader("12345678"), 8, "", ""},
		"whole, in pieces":    {iotest.OneByteReader(strings.NewReader("12345678")), -1, "identity", ""},
		"empty":               {strings.NewReader(""), 0, "", ""},
		"too large as it is":  {strings.NewReader("123456789"), -1, "", regie.CodeTooLarge},
		"too large, not read": {iotest.ErrReader(io.ErrNoProgress), 9, "", regie.CodeTooLarge},
		"cut off":             {io.MultiReader(strings.NewReader("12"), iotest.ErrReader(io.ErrUnexpectedEOF)), 8, "", regie.CodeBadRequest},
		"late":                {iotest.ErrReader(os.ErrDeadlineExceeded), 8, "", regie.CodeRequestTimeout},
		"the server stops":    {iotest.ErrReader(stopping), 8, "", regie.CodeEngineGone},
		"encoded":             {strings.NewReader("12345678"), 8, "gzip", regie.CodeBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", test.body)
			r.ContentLength = test.length
			r.Header.Set("Content-Encoding", test.encoding)
			data, err := Body(httptest.NewRecorder(), r, 8)
			if regie.CodeOf(err) != test.code || err == nil && test.length > 0 && int64(len(data)) != test.length {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}

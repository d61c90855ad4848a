// Package httpread reads whole bodies over HTTP, within bounds: of requests, with the same errors
// for every transport of a server, and of answers.
package httpread

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
)

// MaxBody is the default bound of a request's body, in bytes (spec 11.3).
const MaxBody = 16 << 20

// Body reads a request's body of at most most bytes. It returns CodeTooLarge, at once if the
// announced length is over the bound; CodeRequestTimeout for a body that is late; CodeBadRequest
// for one that is encoded or cut off. It passes on errors with a code from the body's reader, such
// as a stopping server's (CodeEngineGone).
func Body(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, regie.Errorf(regie.CodeBadRequest, "the body is encoded as %s: send it as it is", encoding)
	}
	tooLarge := regie.Errorf(regie.CodeTooLarge, "the request is larger than %d bytes", most)
	if r.ContentLength > most {
		return nil, tooLarge
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err == nil {
		return data, nil
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, tooLarge
	}
	if coded, is := errors.AsType[*regie.Error](err); is {
		return nil, coded
	}
	if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() {
		return nil, regie.Errorf(regie.CodeRequestTimeout, "the body of the request did not arrive in time")
	}
	// the connection's own words name addresses of this machine
	return nil, regie.Errorf(regie.CodeBadRequest, "the request ended before its body was complete")
}

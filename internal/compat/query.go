package compat

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// The parameters of addresses. Those of any say which client asks, or of which version of an API it
// means; a response's are of how it is told.
var (
	ofAny      = []string{"beta", "api-version", "client_version"}
	ofModels   = []string{"limit", "after_id", "before_id"}
	ofResponse = []string{"include", "include[]", "include_obfuscation"}
)

// severalTimes are parameters that are lists.
var severalTimes = []string{"include", "include[]"}

// strictly serves only a request whose parameters are known: what is not known would be as if it
// had not been said.
func (s *server) strictly(known []string, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			if err := queried(r.URL.RawQuery, known); err != nil {
				s.fail(w, r, err)
				return
			}
		}
		serve(w, r)
	}
}

// queried refuses parameters that cannot be read, that nobody knows, or that stand twice.
func queried(query string, known []string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return &problem{kind: kindInvalid, err: regie.Errorf(regie.CodeBadRequest,
			"the parameters of the address cannot be read: write them as name=value, with & between them")}
	}
	for name, given := range values {
		if !slices.Contains(known, name) && !slices.Contains(ofAny, name) {
			instead := ""
			if len(known) > 0 {
				instead = ": " + strings.Join(known, ", ")
			}
			return refused(clip(name), "there is no parameter %q here%s", clip(name), instead)
		}
		if len(given) > 1 && !slices.Contains(severalTimes, name) {
			return refused(name, "the parameter %q stands there more than once", name)
		}
	}
	return nil
}

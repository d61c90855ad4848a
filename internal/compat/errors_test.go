package compat

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
)

// TestFrenchFailure: why a provider did not answer is told in the language of who asks, with what
// is said in it.
func TestFrenchFailure(t *testing.T) {
	french := i18n.New("fr")
	s := &server{Config: Config{Translate: func(language string, err error) string { return i18n.New(language).Error(err) }}}
	inner := regie.Say("%s (try again in a while, or use another model)", "503")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", nil)
	r.Header.Set("Accept-Language", "fr-CH, en")
	for name, note := range map[string]regie.Sentence{"alone": inner, "in another": regie.SayOf("the run ended: %s", inner)} {
		want := french.Sentence(note)
		if why := s.wireErrorOf(r, &problem{err: regie.ErrorOf(regie.CodeProviderBusy, note)}); why.message != want || want == note.String() || why.code != string(regie.CodeProviderBusy) {
			t.Errorf("%s: %q (%s), want %q", name, why.message, why.code, want)
		}
		if got := (&following{answer: &answer{server: s, r: r}}).translate(note); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

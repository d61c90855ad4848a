package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// prompt shows what a model is sent, or was sent (decision 14).
func (s *server) prompt(w http.ResponseWriter, r *http.Request) {
	var in dispatch.PromptRequest
	var err error
	query := r.URL.Query()
	for _, field := range []struct {
		name string
		into *regie.ID
	}{{"session", &in.SessionID}, {"round", &in.RoundID}, {"call", &in.CallID}} {
		if text := query.Get(field.name); err == nil && text != "" {
			*field.into, err = regie.ParseID(text)
		}
	}
	in.Root, in.CallPart = query.Get("root"), query.Get("call_part")
	for name, into := range map[string]*int{"exchange": &in.Exchange, "attempt": &in.Attempt} {
		if text := query.Get(name); err == nil && text != "" {
			if *into, err = strconv.Atoi(text); err != nil || *into < 1 {
				err = regie.Errorf(regie.CodeBadRequest, "%s must be a number from 1 on", name)
			}
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out, err := s.control.Prompt(r.Context(), in)
	s.answer(w, r, http.StatusOK, out, err)
}

// Prompt implements dispatch.Control.
func (c *Client) Prompt(ctx context.Context, in dispatch.PromptRequest) (dispatch.Prompt, error) {
	query := url.Values{}
	for _, field := range []struct {
		name string
		id   regie.ID
	}{{"session", in.SessionID}, {"round", in.RoundID}, {"call", in.CallID}} {
		if !field.id.IsZero() {
			query.Set(field.name, field.id.String())
		}
	}
	for name, text := range map[string]string{"root": in.Root, "call_part": in.CallPart} {
		if text != "" {
			query.Set(name, text)
		}
	}
	for name, number := range map[string]int{"exchange": in.Exchange, "attempt": in.Attempt} {
		if number != 0 {
			query.Set(name, strconv.Itoa(number))
		}
	}
	var out dispatch.Prompt
	err := c.call(ctx, http.MethodGet, "/api/v1/prompt?"+query.Encode(), nil, &out)
	return out, err
}

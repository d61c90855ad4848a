package httpapi

import (
	"net/http"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// sessionWord carries the words that are said to a whole session (decision 6).
func (s *server) sessionWord(w http.ResponseWriter, r *http.Request) {
	id, err := regie.ParseID(r.PathValue("id"))
	var out any = struct{}{}
	if err == nil {
		switch word := r.PathValue("word"); word {
		case "stop":
			out, err = s.control.Stop(r.Context(), id)
		case "close":
			err = s.control.CloseSession(r.Context(), id)
		default:
			err = regie.Errorf(regie.CodeNotFound, "there is no word %q for a session: use stop or close", word)
		}
	}
	s.answer(w, r, http.StatusOK, out, err)
}

// rules lists standing rules.
func (s *server) rules(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	filter := store.RuleFilter{Root: query.Get("root"), Short: query.Get("short")}
	var err error
	if text := query.Get("id"); text != "" {
		filter.ID, err = regie.ParseID(text)
	}
	if text := query.Get("ended"); err == nil && text != "" {
		if filter.Ended, err = strconv.ParseBool(text); err != nil {
			err = regie.Errorf(regie.CodeBadRequest, "ended must be true or false")
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list, err := s.control.Rules(r.Context(), filter)
	s.answer(w, r, http.StatusOK, list, err)
}

func (s *server) revoke(w http.ResponseWriter, r *http.Request) {
	var in dispatch.RevokeRequest
	err := decode(w, r, &in)
	if err == nil {
		err = s.control.Revoke(r.Context(), in)
	}
	s.answer(w, r, http.StatusOK, struct{}{}, err)
}

// inbox lists what waits for people.
func (s *server) inbox(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	filter := store.InboxFilter{Root: query.Get("root"), Short: query.Get("short")}
	var err error
	if text := query.Get("session"); text != "" {
		filter.SessionID, err = regie.ParseID(text)
	}
	if text := query.Get("id"); err == nil && text != "" {
		filter.ID, err = regie.ParseID(text)
	}
	if text := query.Get("brief"); err == nil && text != "" {
		if filter.Brief, err = strconv.ParseBool(text); err != nil {
			err = regie.Errorf(regie.CodeBadRequest, "brief must be true or false")
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	inbox, err := s.control.Inbox(r.Context(), filter)
	s.answer(w, r, http.StatusOK, inbox, err)
}

func (s *server) decide(w http.ResponseWriter, r *http.Request) {
	var in dispatch.DecideRequest
	id, err := regie.ParseID(r.PathValue("id"))
	if err == nil {
		err = decode(w, r, &in)
	}
	if err == nil && !in.ApprovalID.IsZero() && in.ApprovalID != id {
		err = regie.Errorf(regie.CodeBadRequest, "the request is about another approval than its address")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	in.ApprovalID = id
	out, err := s.control.Decide(r.Context(), in)
	s.answer(w, r, http.StatusOK, out, err)
}

func (s *server) reply(w http.ResponseWriter, r *http.Request) {
	var in dispatch.AnswerRequest
	id, err := regie.ParseID(r.PathValue("id"))
	if err == nil {
		err = decode(w, r, &in)
	}
	if err == nil && !in.QuestionID.IsZero() && in.QuestionID != id {
		err = regie.Errorf(regie.CodeBadRequest, "the request is about another question than its address")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	in.QuestionID = id
	out, err := s.control.Answer(r.Context(), in)
	s.answer(w, r, http.StatusOK, out, err)
}

func (s *server) resolve(w http.ResponseWriter, r *http.Request) {
	var in dispatch.ResolveRequest
	id, err := regie.ParseID(r.PathValue("id"))
	if err == nil {
		err = decode(w, r, &in)
	}
	if err == nil && !in.CallID.IsZero() && in.CallID != id {
		err = regie.Errorf(regie.CodeBadRequest, "the request is about another call than its address")
	}
	if err == nil {
		in.CallID = id
		err = s.control.Resolve(r.Context(), in)
	}
	s.answer(w, r, http.StatusOK, struct{}{}, err)
}

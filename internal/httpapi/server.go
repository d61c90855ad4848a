package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// maxBody bounds a request's body (spec 11.3).
const maxBody = 16 << 20

// Translate renders an error's sentence in a language ("fr", "en").
type Translate func(language string, err error) string

// Handler serves a Control.
func Handler(control dispatch.Control, translate Translate) http.Handler {
	s := &server{control: control, translate: translate}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("POST /api/v1/runs", s.submit)
	mux.HandleFunc("GET /api/v1/rounds", s.list)
	mux.HandleFunc("GET /api/v1/rounds/{id}", s.get)
	mux.HandleFunc("GET /api/v1/spending", func(w http.ResponseWriter, r *http.Request) {
		spent, err := s.control.Spent(r.Context(), r.URL.Query().Get("root"))
		s.answer(w, r, http.StatusOK, spent, err)
	})
	mux.HandleFunc("POST /api/v1/rounds/{id}/{word}", s.word)
	s.sessionRoutes(mux)
	s.undoRoutes(mux)
	s.controlRoutes(mux)
	mux.HandleFunc("GET /api/v1/sessions/{id}/events", s.events)
	mux.HandleFunc("POST /api/v1/sessions/{id}/{word}", s.sessionWord)
	mux.HandleFunc("GET /api/v1/prompt", s.prompt)
	mux.HandleFunc("GET /api/v1/inbox", s.inbox)
	mux.HandleFunc("POST /api/v1/approvals/{id}", s.decide)
	mux.HandleFunc("POST /api/v1/questions/{id}", s.reply)
	mux.HandleFunc("POST /api/v1/calls/{id}/resolve", s.resolve)
	mux.HandleFunc("GET /api/v1/rules", s.rules)
	mux.HandleFunc("POST /api/v1/rules/revoke", s.revoke)
	mux.HandleFunc("GET /api/v1/cache", s.cacheStats)
	mux.HandleFunc("POST /api/v1/cache/clear", s.clearCache)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, regie.Errorf(regie.CodeNotFound, "there is nothing at %s %s", r.Method, r.URL.Path))
	})
	return mux
}

type server struct {
	control   dispatch.Control
	translate Translate
}

func (s *server) submit(w http.ResponseWriter, r *http.Request) {
	var in dispatch.RunRequest
	if err := decode(w, r, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	run, err := s.control.Submit(r.Context(), in)
	s.answer(w, r, http.StatusAccepted, run, err)
}

func (s *server) get(w http.ResponseWriter, r *http.Request) {
	id, err := regie.ParseID(r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	view, err := s.control.Get(r.Context(), id)
	s.answer(w, r, http.StatusOK, view, err)
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	limit := 20
	if text := r.URL.Query().Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 1000 {
			s.fail(w, r, regie.Errorf(regie.CodeBadRequest, "limit must be a number from 1 to 1000"))
			return
		}
	}
	rounds, err := s.control.List(r.Context(), r.URL.Query().Get("root"), limit)
	s.answer(w, r, http.StatusOK, rounds, err)
}

func (s *server) word(w http.ResponseWriter, r *http.Request) {
	id, err := regie.ParseID(r.PathValue("id"))
	if err == nil {
		switch word := r.PathValue("word"); word {
		case "interrupt":
			err = s.control.Interrupt(r.Context(), id)
		case "pause":
			err = s.control.Pause(r.Context(), id)
		case "resume":
			err = s.control.Resume(r.Context(), id)
		default:
			err = regie.Errorf(regie.CodeNotFound, "there is no word %q: use interrupt, pause or resume", word)
		}
	}
	s.answer(w, r, http.StatusOK, struct{}{}, err)
}

// events streams a session's log as server-sent events; the id of a durable one is its sequence number (spec 10.2).
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	id, err := regie.ParseID(r.PathValue("id"))
	var after int64
	if text := r.URL.Query().Get("after"); err == nil && text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			err = regie.Errorf(regie.CodeBadRequest, "after must be a sequence number")
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	flusher := http.NewResponseController(w)
	begun := false
	err = s.control.Events(r.Context(), id, after, func(item dispatch.Item) error {
		begun = true
		if err := writeItem(w, item); err != nil {
			return err
		}
		return flusher.Flush()
	})
	if err != nil && !begun && r.Context().Err() == nil {
		s.fail(w, r, err)
	}
}

func writeItem(w io.Writer, item dispatch.Item) error {
	var frame strings.Builder
	var data []byte
	var err error
	if item.Event != nil {
		frame.WriteString("id: " + strconv.FormatInt(item.Event.Seq, 10) + "\nevent: " + string(item.Event.Type) + "\ndata: ")
		data, err = json.Marshal(item.Event)
	} else {
		frame.WriteString("event: stream_chunk\ndata: ")
		data, err = json.Marshal(item.Delta)
	}
	if err != nil {
		return err
	}
	frame.Write(data) // JSON has no raw line breaks
	frame.WriteString("\n\n")
	_, err = io.WriteString(w, frame.String())
	return err
}

// decode reads a strict JSON body: unknown, duplicate and case-variant keys are refused (spec 11.3).
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return regie.Errorf(regie.CodeBadRequest, "the request is larger than %d bytes", maxBody)
	case err != nil:
		return regie.Errorf(regie.CodeBadRequest, "the request could not be read: %v", err)
	}
	if err := jsonv2.Unmarshal(body, into, jsonv2.RejectUnknownMembers(true)); err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the request is not what is expected here: %v", err)
	}
	return nil
}

func (s *server) answer(w http.ResponseWriter, r *http.Request, status int, body any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client has gone if this fails
}

// problem is the body of an error (RFC 9457), with the stable code (spec 10.2).
type problem struct {
	Type   string     `json:"type"`
	Status int        `json:"status"`
	Code   regie.Code `json:"code"`
	Detail string     `json:"detail"`
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := regie.CodeOf(err)
	p := problem{Type: "about:blank", Status: status(code), Code: code, Detail: s.translate(r.Header.Get("Accept-Language"), err)}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

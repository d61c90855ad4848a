package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/store"
)

const absent = "0197e0a1-2b3c-7d4e-8f50-61728394a5ff"

// TestBadInput sends what a client must not: each gets a status, a stable code, and nothing reaches
// the engine (spec 11.3, 12.5).
func TestBadInput(t *testing.T) {
	const id = "0197e0a1-2b3c-7d4e-8f50-61728394a5b6"
	service, handler := newEngine(t, id)
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		code               regie.Code
	}{
		"no JSON":           {"POST", "/api/v1/runs", `{`, 400, regie.CodeBadRequest},
		"unknown key":       {"POST", "/api/v1/runs", `{"approved":true}`, 400, regie.CodeBadRequest},
		"duplicate key":     {"POST", "/api/v1/runs", `{"text":"a","text":"b"}`, 400, regie.CodeBadRequest},
		"case-variant key":  {"POST", "/api/v1/runs", `{"Text":"a"}`, 400, regie.CodeBadRequest},
		"wrong type":        {"POST", "/api/v1/runs", `{"text":1}`, 400, regie.CodeBadRequest},
		"bad id in it":      {"POST", "/api/v1/runs", `{"session_id":"x"}`, 400, regie.CodeBadRequest},
		"too deep":          {"POST", "/api/v1/runs", strings.Repeat(`[`, 20_000), 400, regie.CodeBadRequest},
		"too large":         {"POST", "/api/v1/runs", `{"text":"` + strings.Repeat("x", 17<<20) + `"}`, 413, regie.CodeTooLarge},
		"bad id":            {"GET", "/api/v1/rounds/nothing", "", 400, regie.CodeBadID},
		"upper-case id":     {"GET", "/api/v1/rounds/" + strings.ToUpper(id), "", 400, regie.CodeBadID},
		"unknown round":     {"GET", "/api/v1/rounds/" + id, "", 404, regie.CodeNotFound},
		"unknown word":      {"POST", "/api/v1/rounds/" + id + "/explode", "", 404, regie.CodeNotFound},
		"resumed nowhere":   {"POST", "/api/v1/rounds/" + id + "/resume", "", 404, regie.CodeNotFound},
		"bad limit":         {"GET", "/api/v1/rounds?limit=-1", "", 400, regie.CodeBadRequest},
		"bad after":         {"GET", "/api/v1/sessions/" + id + "/events?after=x", "", 400, regie.CodeBadRequest},
		"unknown session":   {"GET", "/api/v1/sessions/" + absent + "/events", "", 404, regie.CodeNotFound},
		"a list":            {"POST", "/api/v1/sessions", `[]`, 400, regie.CodeBadRequest},
		"a text":            {"POST", "/api/v1/runs", `"x"`, 400, regie.CodeBadRequest},
		"nothing":           {"POST", "/api/v1/runs", ``, 400, regie.CodeBadRequest},
		"unknown filter":    {"GET", "/api/v1/sessions?roots=/w", "", 400, regie.CodeBadRequest},
		"filter twice":      {"GET", "/api/v1/sessions?root=/w&root=/x", "", 400, regie.CodeBadRequest},
		"bad cursor":        {"GET", "/api/v1/sessions?cursor=abc", "", 400, regie.CodeBadRequest},
		"message nowhere":   {"POST", "/api/v1/sessions/" + absent + "/messages", `{"content":"x"}`, 404, regie.CodeNotFound},
		"message of keys":   {"POST", "/api/v1/sessions/" + id + "/messages", `{"Content":"x"}`, 400, regie.CodeBadRequest},
		"answer to none":    {"POST", "/api/v1/sessions/" + id + "/responses", `{"text":"x"}`, 409, regie.CodeConflict},
		"bad state":         {"GET", "/api/v1/approvals?state=old", "", 400, regie.CodeBadRequest},
		"wrong method":      {"PUT", "/api/v1/sessions/" + id, "", 405, regie.CodeNoMethod},
		"closed nowhere":    {"POST", "/api/v1/sessions/" + absent + "/close", "", 404, regie.CodeNotFound},
		"no control":        {"POST", "/api/v1/sessions/" + absent + "/control", "", 404, regie.CodeNotFound},
		"bad control":       {"DELETE", "/api/v1/sessions/x/control", "", 400, regie.CodeBadID},
		"bad filter":        {"GET", "/api/v1/inbox?session=x", "", 400, regie.CodeBadID},
		"decided nowhere":   {"POST", "/api/v1/approvals/" + absent, `{"request_id":"r","decisions":[]}`, 404, regie.CodeNotFound},
		"other approval":    {"POST", "/api/v1/approvals/" + id, `{"approval_id":"0197e0a1-2b3c-7d4e-8f50-61728394a5b7"}`, 400, regie.CodeBadRequest},
		"resolved nowhere":  {"POST", "/api/v1/calls/" + absent + "/resolve", `{"as":"happened"}`, 404, regie.CodeNotFound},
		"bad question":      {"POST", "/api/v1/questions/x", `{}`, 400, regie.CodeBadID},
		"no decision":       {"POST", "/api/v1/approvals/" + id, `{}`, 400, regie.CodeBadRequest},
		"no reply":          {"POST", "/api/v1/questions/" + id, `{"request_id":"r"}`, 400, regie.CodeBadRequest},
		"no session":        {"POST", "/api/v1/runs", `{"text":"go"}`, 400, regie.CodeBadRequest},
		"no message":        {"POST", "/api/v1/sessions/" + id + "/take-back", `{}`, 400, regie.CodeBadRequest},
		"another's cursor":  {"GET", "/api/v1/tokens?cursor=" + store.Cursor("sessions", store.Mark{At: time.Now(), ID: regie.NewID()}), "", 400, regie.CodeBadRequest},
		"no rule":           {"POST", "/api/v1/rules/revoke", `{}`, 400, regie.CodeBadRequest},
		"bad rule":          {"POST", "/api/v1/rules/revoke", `{"rule_ids":["x"]}`, 400, regie.CodeBadRequest},
		"bad prompt":        {"GET", "/api/v1/prompt?call=x", "", 400, regie.CodeBadID},
		"bad exchange":      {"GET", "/api/v1/prompt?round=" + id + "&exchange=0", "", 400, regie.CodeBadRequest},
		"no such prompt":    {"GET", "/api/v1/prompt?round=" + absent + "&exchange=3", "", 404, regie.CodeNotFound},
		"bad list":          {"GET", "/api/v1/sessions?limit=0", "", 400, regie.CodeBadRequest},
		"fork nowhere":      {"POST", "/api/v1/sessions/" + id + "/fork", `{"at":-1}`, 400, regie.CodeBadRequest},
		"name of another":   {"PATCH", "/api/v1/sessions/" + id, `{"session_id":"0197e0a1-2b3c-7d4e-8f50-61728394a5b7","name":"x"}`, 400, regie.CodeBadRequest},
		"undo elsewhere":    {"POST", "/api/v1/sessions/" + id + "/undo", `{"session_id":"0197e0a1-2b3c-7d4e-8f50-61728394a5b7"}`, 400, regie.CodeBadRequest},
		"nothing to undo":   {"POST", "/api/v1/sessions/" + id + "/undo", `{}`, 404, regie.CodeNotFound},
		"undo of nothing":   {"POST", "/api/v1/undos", `{"target":"x"}`, 400, regie.CodeBadRequest},
		"removed nowhere":   {"DELETE", "/api/v1/sessions/" + absent, "", 404, regie.CodeNotFound},
		"two slashes":       {"GET", "//api/v1/sessions", "", 404, regie.CodeNotFound},
		"slashes inside":    {"POST", "/api/v1//sessions", "{}", 404, regie.CodeNotFound},
		"a dot":             {"GET", "/api/v1/./sessions", "", 404, regie.CodeNotFound},
		"two dots":          {"POST", "/v1/../api/v1/sessions", "{}", 404, regie.CodeNotFound},
		"dots in disguise":  {"GET", "/api/v1/x/%2e%2e/sessions", "", 404, regie.CodeNotFound},
		"slash in disguise": {"GET", "/api%2fv1/sessions", "", 404, regie.CodeNotFound},
		"slash at the end":  {"GET", "/api/v1/sessions/", "", 404, regie.CodeNotFound},
		"half a byte":       {"GET", "/api/v1/sessions?limit=%zz", "", 400, regie.CodeBadRequest},
		"a semicolon":       {"GET", "/api/v1/sessions?limit=1;cursor=x", "", 400, regie.CodeBadRequest},
		"an id of braces":   {"GET", "/api/v1/sessions/%7B" + id + "%7D", "", 400, regie.CodeBadID},
		"an id of zeros":    {"GET", "/api/v1/sessions/00000000-0000-0000-0000-000000000000", "", 400, regie.CodeBadID},
		"a zero filter":     {"GET", "/api/v1/inbox?session=00000000-0000-0000-0000-000000000000", "", 400, regie.CodeBadID},
		"half a character":  {"POST", "/api/v1/approvals/" + id, "{\"request_id\":\"\xff\"}", 400, regie.CodeBadRequest},
		"unknown path":      {"GET", "/api/v2/anything", "", 404, regie.CodeNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body)))
			if response.Code != c.status || !strings.Contains(response.Body.String(), `"code":"`+string(c.code)+`"`) {
				t.Errorf("%d %.200s, want %d %s", response.Code, response.Body, c.status, c.code)
			}
			if said := response.Body.String(); strings.Contains(said, "Go ") || strings.Contains(said, "dispatch.") || strings.Contains(said, "httpapi.") {
				t.Errorf("names of Go are said to a client: %.200s", said)
			}
			if kind := response.Header().Get("Content-Type"); kind != "application/problem+json" {
				t.Errorf("content type %q", kind)
			}
		})
	}
	rounds := func() int {
		found, err := service.Rounds.List(access.AsOwner(t.Context()), store.RoundFilter{})
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if n := rounds(); n != 0 {
		t.Errorf("%d bad requests reached the engine", n)
	}
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/runs", strings.NewReader(`{"session_id":"`+id+`","text":"go"}`)))
	if response.Code != http.StatusAccepted || rounds() != 1 {
		t.Errorf("a good request: %d %s", response.Code, response.Body)
	}
}

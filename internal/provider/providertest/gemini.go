package providertest

import (
	"encoding/json"
	"net/http"
)

// Gemini's format as documented: whole calls, signatures on the part that they sign, counts that
// grow with the stream, and no mark at its end.

func geminiChunk(s *Scene, reason any, parts ...fields) string {
	candidate := fields{"index": 0, "content": fields{"role": "model", "parts": parts}}
	if reason != nil {
		candidate["finishReason"] = reason
	}
	return "data: " + object(fields{
		"candidates": []any{candidate}, "modelVersion": "scripted", "responseId": "r1",
		"usageMetadata": fields{
			"promptTokenCount": s.Input, "cachedContentTokenCount": s.CacheRead,
			"candidatesTokenCount": s.Output, "totalTokenCount": s.Input + s.Output,
		},
	}) + "\n\n"
}

func geminiStream(s *Scene) (out []string) {
	if s.Thinking != "" {
		out = append(out, geminiChunk(s, nil, fields{"text": s.Thinking, "thought": true}))
	}
	for _, text := range s.Text {
		out = append(out, geminiChunk(s, nil, fields{"text": text}))
	}
	for i, c := range s.Calls {
		call := fields{"name": c.Name}
		if c.ID != "" {
			call["id"] = c.ID
		}
		if c.Arguments != "" {
			call["args"] = json.RawMessage(c.Arguments)
		}
		part := fields{"functionCall": call}
		if i == 0 && s.Signature != "" { // of parallel calls the first one is signed
			part["thoughtSignature"] = s.Signature
		}
		out = append(out, geminiChunk(s, nil, part))
	}
	end := []fields{}
	if len(s.Calls) == 0 && s.Signature != "" {
		end = append(end, fields{"text": "", "thoughtSignature": s.Signature})
	}
	// it says STOP with calls too
	reason := map[string]string{"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS"}[s.reason()]
	return append(out, geminiChunk(s, reason, end...))
}

func geminiFailure(s *Scene) string {
	status := s.Status
	if s.InBand {
		status = http.StatusServiceUnavailable
	}
	return object(fields{"error": fields{"code": status, "message": s.Message, "status": s.Kind}})
}

func geminiModels(w http.ResponseWriter, r *http.Request, names []string) bool {
	if r.URL.Path != "/v1beta/models" {
		return false
	}
	models := []any{fields{"name": "models/embedder", "supportedGenerationMethods": []string{"embedContent"}}}
	for _, name := range names {
		models = append(models, fields{
			"name": "models/" + name, "displayName": name, "inputTokenLimit": 1048576,
			"outputTokenLimit": 65536, "thinking": true,
			"supportedGenerationMethods": []string{"generateContent", "countTokens"},
		})
	}
	return answer(w, fields{"models": models})
}

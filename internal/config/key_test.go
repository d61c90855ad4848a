package config

import "testing"

// TestVendorOfKey: only a prefix that one vendor has says whose a key is.
func TestVendorOfKey(t *testing.T) {
	for key, want := range map[string]string{
		"sk-ant-api03-x": "anthropic", "AIzaX": "gemini", "AQ.x": "gemini", "gsk_x": "groq", "sk-or-v1-x": "openrouter", "sk-proj-x": "openai",
		"sk-svcacct-x": "openai", "pplx-x": "perplexity", "xai-x": "xai", "sk-x": "", "": "", "x": "",
	} {
		if got := VendorOfKey(key); got != want {
			t.Errorf("%q is taken for one of %q, want %q", key, got, want)
		}
	}
}

// TestForeignKey: a key goes to its own vendor, and to servers that are no vendor's.
func TestForeignKey(t *testing.T) {
	for _, c := range []struct {
		address, key string
		want         string
	}{
		{"https://api.openai.com/v1", "sk-proj-x", ""},
		{"https://api.openai.com/v1", "sk-x", ""},
		{"https://eu.api.openai.com/v1", "gsk_x", "groq"},
		{"https://api.openai.com/v1", "gsk_x", "groq"},
		{"https://api.openai.com/v1", "xai-x", "xai"},
		{"https://api.anthropic.com", "sk-proj-x", "openai"},
		{"https://api.anthropic.com", "sk-ant-x", ""},
		{"https://generativelanguage.googleapis.com/v1beta/openai", "AIzaX", ""},
		{"https://api.deepseek.com/v1", "sk-x", ""},
		{"https://api.deepseek.com/v1", "sk-or-x", "openrouter"},
		{"https://gateway.example/v1", "sk-ant-x", ""},
		{"http://127.0.0.1:4000/v1", "gsk_x", ""},
	} {
		p := Provider{Name: "p", BaseURL: c.address, APIKey: c.key, Origin: map[string]string{}}
		if got := p.ForeignKey(); got != c.want {
			t.Errorf("%s at %s: %q, want %q", c.key, c.address, got, c.want)
		}
		if refused := p.Keyless() != nil; refused != (c.want != "") {
			t.Errorf("%s at %s: refused is %v", c.key, c.address, refused)
		}
	}
}

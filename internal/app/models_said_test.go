package app_test

import (
	"testing"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/text"
)

// TestWhyNoModels: why a provider of a server does not answer is read in the reader's language.
func TestWhyNoModels(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t))
	b.settings.Providers = map[string]config.Provider{
		"far": {Name: "far", Type: "openai", BaseURL: "http://127.0.0.1:1/v1", APIKey: "k", Origin: map[string]string{}},
	}
	h := b.serve("127.0.0.1:0")
	var models httpapi.Page[dispatch.ProviderModels]
	h.json("GET", "/api/v1/models", "", 200, &models)
	for _, info := range app.ServedModels(models.Items) {
		if info.Name != "far" {
			continue
		}
		if french := text.New("fr").Sentence(info.Said); info.Said.IsZero() || info.Said.String() != info.Error || french == info.Error {
			t.Errorf("it is said as %q, and %q", french, info.Error)
		}
		return
	}
	t.Errorf("%+v", models.Items)
}

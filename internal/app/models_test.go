package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/i18n"
)

// TestListModels: a server that is slow is told as such, and of each model what it costs, where
// anybody knows it.
func TestListModels(t *testing.T) {
	t.Parallel()
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer slow.Close()
	ready := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"object":"list","data":[{"id":"known","object":"model"},{"id":"other","object":"model"}]}`)
	}))
	defer ready.Close()
	input, output := config.Dollars(2_000_000), config.Dollars(5_500_000)
	prices := map[string]config.Rates{"known": {Input: &input, Output: &output}}
	c := config.Config{Providers: map[string]config.Provider{
		"slow":  {Name: "slow", Type: config.ProviderOpenAI, BaseURL: slow.URL + "/v1"},
		"ready": {Name: "ready", Type: config.ProviderOpenAI, BaseURL: ready.URL + "/v1", Prices: prices},
	}}
	list := app.ListModels(t.Context(), c, time.Second)
	if len(list) != 2 || list[0].Name != "ready" {
		t.Fatalf("%+v", list)
	}
	if want := slow.URL + "/v1 did not answer within 1s"; list[1].Code != regie.CodeTimeout || list[1].Error != want {
		t.Errorf("the slow one: %s: %s", list[1].Code, list[1].Error)
	}
	models := list[0].Models
	if len(models) != 2 || models[0].Price == nil || models[0].Price.Input != 2_000_000 || models[0].Price.Output != 5_500_000 {
		t.Fatalf("%+v", models)
	}
	if models[1].Price != nil { // that it is on this machine says nothing
		t.Errorf("%+v", models[1].Price)
	}
	c.Providers = map[string]config.Provider{"own": {Name: "own", Type: config.ProviderOpenAI, Vendor: "vllm", BaseURL: ready.URL + "/v1"}}
	if models = app.ListModels(t.Context(), c, time.Minute)[0].Models; len(models) != 2 || models[1].Price == nil || *models[1].Price != (dispatch.ModelPrice{}) {
		t.Errorf("one that people run themselves: %+v", models)
	}
}

// TestWhyNoModels: why a provider of a server does not answer is read in the reader's language.
func TestWhyNoModels(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
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
		if french := i18n.New("fr").Sentence(info.Said); info.Said.IsZero() || info.Said.String() != info.Error || french == info.Error {
			t.Errorf("it is said as %q, and %q", french, info.Error)
		}
		return
	}
	t.Errorf("%+v", models.Items)
}

// TestTypesHaveCodecs: each type of the registry is made by its own codec, and nothing else is.
func TestTypesHaveCodecs(t *testing.T) {
	t.Parallel()
	made := app.Makers()
	for _, name := range config.TypeNames() {
		if !made[name] {
			t.Errorf("nobody makes %s", name)
		}
		delete(made, name)
	}
	if len(made) > 0 {
		t.Errorf("not in the registry: %v", made)
	}
}

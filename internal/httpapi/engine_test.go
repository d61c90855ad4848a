package httpapi_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpapi"
)

// newEngine returns the service of an engine with the demo provider, and this machine's user's
// interface to it. It has one session, without a message.
func newEngine(t *testing.T, session string) (*control.Service, http.Handler) {
	t.Helper()
	settings, err := config.Load(func(string) string { return "" }, config.Flags{
		DataDir: filepath.Join(t.TempDir(), "data"), Provider: config.ProviderDemo,
	})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := app.OpenEngine(t.Context(), app.Options{Config: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	service, ctx := engine.Service(), access.AsOwner(t.Context())
	place, err := service.Workspaces.Open(ctx, dispatch.WorkspaceRequest{Path: t.TempDir()})
	id, bad := regie.ParseID(session)
	if err == nil && bad == nil {
		_, err = service.Sessions.New(ctx, dispatch.SessionRequest{SessionID: id, WorkspaceID: place.ID})
	}
	if err != nil || bad != nil {
		t.Fatal(err, bad)
	}
	return service, serving(service)
}

// serving is this machine's user's interface to a service.
func serving(service *control.Service) http.Handler {
	return httpapi.Handler(httpapi.Config{Service: service, Trusted: true, Translate: func(_ string, err error) string { return err.Error() }})
}

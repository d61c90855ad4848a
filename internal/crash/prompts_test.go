//go:build faults

package crash

import (
	"context"
	"path/filepath"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// checkPrompts asserts that what was sent can be rebuilt from the store, byte for byte, whichever
// process sent it (decision 14).
func (h *harness) checkPrompts(p plan, views []store.RoundView) {
	conn, err := h.reader()
	if err != nil {
		h.fail(p, "what was sent cannot be read: %v", err)
		return
	}
	if h.fleet == nil {
		defer conn.Close()
	}
	ctx := context.Background()
	for i := range views {
		for _, x := range views[i].Exchanges {
			if x.Purpose == regie.PurposeSummary {
				h.saw("summary " + string(x.State))
			}
			// which is not rebuilt
			if x.Request.IsZero() || x.State == regie.ExchangeFailed && x.Purpose == regie.PurposeSummary {
				continue
			}
			sent, err := conn.Prompt(ctx, dispatch.PromptRequest{RoundID: x.RoundID, Exchange: x.Number})
			switch {
			case err != nil:
				h.fail(p, "what was sent in exchange %d cannot be rebuilt: %v", x.Number, err)
			case !sent.Exact():
				h.fail(p, "exchange %d (%s) is rebuilt otherwise (decision 14): %s", x.Number, x.Purpose, sent.Body)
			default:
				h.saw("prompt rebuilt")
			}
		}
	}
}

// reader returns what reads the store beside its engines; several of them share one.
func (h *harness) reader() (*app.Conn, error) {
	if h.fleet != nil && h.fleet.reader != nil {
		return h.fleet.reader, nil
	}
	env := map[string]string{
		"REGIE_DATA_DIR": filepath.Join(h.dir, "data"), "REGIE_DATABASE": h.database, "HOME": h.dir, "REGIE_BASE_URL": h.world.model.URL + "/v1", "REGIE_MODEL": "scripted",
	}
	settings, err := config.Load(func(name string) string { return env[name] }, config.Flags{})
	if err != nil {
		return nil, err
	}
	return app.Connect(context.Background(), app.Options{Config: settings, ReadOnly: true})
}

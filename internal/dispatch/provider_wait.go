package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// ErrNoProvider says that the settings of a round's provider are not here (decision 54).
var ErrNoProvider = regie.Errorf(regie.CodeNoModel,
	"the run was started with other settings of the model: continue it with the same provider, address and key, or choose another one with regie runs resume --provider")

// providerWait is how long a round waits for the settings of its provider before its session is
// paused.
const providerWait = 7 * 24 * time.Hour

// setAside frees the slot of a running round that this engine cannot continue: the round waits for
// the settings of its provider, or leaves the queue for another engine.
func setAside(ctx context.Context, d *Dispatcher, round regie.Round, why error) error {
	if !errors.Is(why, ErrNoProvider) {
		return d.store.SetAside(ctx, store.SetAside{RoundID: round.ID, Holder: d.holder})
	}
	said := regie.Say(
		"the run waits for the settings of its provider %s: start regie with them, or choose another one with %s",
		round.Provider, "regie runs resume "+round.ID.String()+" --provider NAME")
	now := time.Now().UTC()
	return d.store.SetAside(ctx, store.SetAside{
		RoundID: round.ID, Holder: d.holder, Until: now.Add(providerWait), Notice: &regie.Notice{
			RoundID: round.ID, Kind: regie.NoticeProvider, Since: now, Text: said.String(),
			Said: []regie.Sentence{said},
		},
	})
}

// ResumeProviderWaits goes on with the rounds that waited for settings of a provider that are here
// now.
func (d *Dispatcher) ResumeProviderWaits(ctx context.Context) {
	rounds, err := d.store.ProviderWaits(ctx)
	for _, id := range rounds {
		round, failed := d.store.Round(ctx, id)
		if failed == nil && d.serves(round) == nil {
			failed = d.Resume(ctx, id)
		}
		err = errors.Join(err, failed)
	}
	if err != nil && d.base.Err() == nil {
		d.log.Warn("runs that wait for their provider are left as they are", "code", string(regie.CodeOf(err)),
			"error", err)
	}
}

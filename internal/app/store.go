package app

import (
	"context"
	"fmt"
	"os"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// holderName names this process in leases. place is the lock's own place, which this process shares
// with the earlier holders of the engine lock, all ended. On a shared database the name is unique.
func holderName(c config.Config, lock string) (holder, place string) {
	process := fmt.Sprintf("pid %d %s", os.Getpid(), regie.NewID()) // a number comes again, in a container each time
	if c.Database == "" {
		return process, ""
	}
	host, _ := os.Hostname()
	place = lock + " "
	return fmt.Sprintf("%s%s:%s %s", place, host, c.DataDir, process), place // what people look for among it
}

// openStore opens the store of the settings, read-only without a notify function. others are the
// engines that share its database.
func openStore(ctx context.Context, o Options, notify store.Notify, others postgres.Others) (*sqlite.Store, error) {
	files := sqlite.Config{Dir: o.Config.DataDir, Notify: notify}
	if o.TuneStore != nil {
		o.TuneStore(&files)
	}
	switch {
	case o.Config.Database != "":
		return postgres.Open(ctx, postgres.Config{
			URL: o.Config.Database, Dir: files.Dir, Notify: notify,
			Gate: files.Gate, ReadOnly: notify == nil, Others: others,
		})
	case notify == nil:
		return sqlite.OpenReadOnly(ctx, files.Dir)
	}
	return sqlite.Open(ctx, files)
}

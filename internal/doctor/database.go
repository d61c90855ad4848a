package doctor

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// database looks into the database, beside whoever uses it.
func (x *exam) database(ctx context.Context) {
	check, cancel := context.WithTimeout(ctx, x.CheckTime)
	defer cancel()
	if x.Config.Database != "" && x.Shared != nil {
		x.shared(check)
		return
	}
	if !x.present {
		return
	}
	dir := x.Config.DataDir
	in := sqlite.Inspect(check, dir, x.state(ctx).Running)
	if !in.Exists {
		x.fine("file", "there is none yet: the first run makes it")
		return
	}
	switch code := regie.CodeOf(in.Err); {
	case code == regie.CodeNewerSchema, code == regie.CodeSchemaTooOld:
		x.cause("schema", in.Err).about(in.Path).fix("install the regie that wrote it")
	case code == regie.CodeCorrupt:
		restore(x.cause("file", in.Err).about(in.Path), dir, in.Backups)
		return
	case in.Err != nil:
		x.cause("file", in.Err).about(in.Path).
			fix("see that %s is yours (chmod 600) and close what else uses it, then: regie doctor", in.Path)
		return
	}
	x.fine("file", "%s, %s, and %s in its log", in.Path, size(uint64(in.Size)), size(uint64(in.WAL))).about(in.Path)
	have, want := strconv.FormatInt(in.Schema, 10), strconv.FormatInt(in.Newest, 10)
	switch {
	case in.Schema == 0 || in.Err != nil: // empty; said
	case in.Schema < in.Newest:
		x.warn("schema", "schema %s; this program writes %s, and the next run brings it there after a backup", have,
			want).run("regie run")
	default:
		x.fine("schema", "schema %s, this program's", have)
	}
	switch {
	case len(in.Damage) > 0:
		f := x.fail("check", "the database is damaged: %s", strings.Join(in.Damage, "; ")).about(in.Path)
		restore(f.code(regie.CodeCorrupt), dir, in.Backups)
	case in.Checked:
		x.fine("check", "whole (quick_check)")
	}
	if in.Key != nil {
		x.cause("key", in.Key).fix(
			"put audit.key back from a backup of %s; without it nothing can be written, and no log be verified", dir)
	}
}

// restore says how a backup takes the place of a broken database; without one, how to begin anew
// and lose nothing that is there.
func restore(f *Finding, dir string, backups []string) {
	path := filepath.Join(dir, sqlite.FileName)
	if len(backups) == 0 {
		f.fix("there is no backup beside it: restore your own backup of %s", dir)
		f.fix("or begin anew and keep what is there: mv %s %s", Quote(dir), Quote(dir+".broken"))
		return
	}
	broken := filepath.Join(dir, "broken-"+time.Now().UTC().Format("20060102T150405"))
	f.fix("put the newest backup in its place: mkdir %s && mv %s* %s && cp %s %s",
		Quote(broken), Quote(path), Quote(broken),
		Quote(filepath.Join(broken, backups[0])), Quote(path))
}

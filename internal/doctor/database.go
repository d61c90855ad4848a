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

// checkDatabase checks the database, also while other processes use it.
func (x *exam) checkDatabase(ctx context.Context) {
	check, cancel := context.WithTimeout(ctx, x.CheckTime)
	defer cancel()
	if x.Config.Database != "" && x.Shared != nil {
		x.checkPostgres(check)
		return
	}
	if !x.present {
		return
	}
	dir := x.Config.DataDir
	in := sqlite.Inspect(check, dir, x.engineState(ctx).Running)
	if !in.Exists {
		x.addFine("file", "there is none yet: the first run creates it")
		return
	}
	switch code := regie.CodeOf(in.Err); {
	case code == regie.CodeNewerSchema, code == regie.CodeSchemaTooOld:
		x.addError("schema", in.Err).setSubject(in.Path).addFix("install the regie that wrote it")
	case code == regie.CodeCorrupt:
		adviseRestore(x.addError("file", in.Err).setSubject(in.Path), dir, in.Backups)
		return
	case in.Err != nil:
		x.addError("file", in.Err).setSubject(in.Path).
			addFix("make sure that %s is yours (chmod 600) and that no other program uses it, then: regie doctor", in.Path)
		return
	}
	x.addFine("file", "%s, %s, and %s in its log", in.Path, formatSize(uint64(in.Size)),
		formatSize(uint64(in.WAL))).setSubject(in.Path)
	have, want := strconv.FormatInt(in.Schema, 10), strconv.FormatInt(in.Newest, 10)
	switch {
	case in.Schema == 0 || in.Err != nil: // empty; said
	case in.Schema < in.Newest:
		x.addWarning("schema", "schema %s; this version uses %s, and the next run migrates it after a backup", have,
			want).addCommand("regie run")
	default:
		x.addFine("schema", "schema %s, current", have)
	}
	switch {
	case len(in.Damage) > 0:
		f := x.addFailure("check", "the database is damaged: %s", strings.Join(in.Damage, "; ")).setSubject(in.Path)
		adviseRestore(f.setCode(regie.CodeCorrupt), dir, in.Backups)
	case in.Checked:
		x.addFine("check", "whole (quick_check)")
	}
	if in.Key != nil {
		x.addError("key", in.Key).addFix(
			"restore audit.key from a backup of %s; without it nothing can be written, and no log can be verified", dir)
	}
}

// adviseRestore says how a backup takes the place of a broken database; without one, how to begin
// anew and lose nothing that is there.
func adviseRestore(f *Finding, dir string, backups []string) {
	path := filepath.Join(dir, sqlite.FileName)
	if len(backups) == 0 {
		f.addFix("there is no backup beside it: restore your own backup of %s", dir)
		f.addFix("or start over and keep the old one: mv %s %s", Quote(dir), Quote(dir+".broken"))
		return
	}
	broken := filepath.Join(dir, "broken-"+time.Now().UTC().Format("20060102T150405"))
	f.addFix("put the newest backup in its place: mkdir %s && mv %s* %s && cp %s %s",
		Quote(broken), Quote(path), Quote(broken),
		Quote(filepath.Join(broken, backups[0])), Quote(path))
}

package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// largeWAL is where a log that nobody has brought into the database is worth a word, in bytes.
const largeWAL = 256 << 20

// database looks into the database, beside whoever uses it.
func (x *exam) database(ctx context.Context) {
	if x.Config.Database != "" && x.Shared != nil {
		x.shared(ctx)
		return
	}
	if !x.present {
		return
	}
	dir := x.Config.DataDir
	state := x.state(ctx)
	check, cancel := context.WithTimeout(ctx, x.CheckTime)
	defer cancel()
	in := sqlite.Inspect(check, dir, state.Running)
	x.newest = in.LastEvent
	if !in.Exists {
		x.fine("file", "there is none yet: the first run makes it")
		return
	}
	x.holders(&in, state)
	switch code := regie.CodeOf(in.Err); {
	case isTimeout(in.Err):
		x.warn("file", "%s could not be read within %s", in.Path,
			short(x.CheckTime)).fix("run regie doctor again when less is going on")
		return
	case code == regie.CodeNewerSchema, code == regie.CodeSchemaTooOld:
		x.cause("schema", in.Err).about(in.Path).fix("install the regie that wrote it")
	case code == regie.CodeCorrupt:
		restore(x.cause("file", in.Err).about(in.Path), dir, in.Backups)
		return
	case code == regie.CodeNoPermission:
		x.cause("file", in.Err).about(in.Path).run("chmod 600 " + quote(in.Path)).run("sudo chown " +
			strconv.Itoa(os.Geteuid()) + " " + quote(in.Path))
		return
	case in.Err != nil:
		x.cause("file", in.Err).about(in.Path).fix("close what else uses %s, then: regie doctor", in.Path)
		return
	}
	x.fine("file", "%s, %s, and %s in its log", in.Path, size(uint64(in.Size)), size(uint64(in.WAL))).about(in.Path)
	if in.WAL > largeWAL {
		x.warn("wal", "%s in the log of the database are not in the database yet: some program reads it all the time",
			size(uint64(in.WAL))).
			fix("close what reads it; the next run brings the log in")
	}
	x.schema(&in)
	x.health(&in, dir)
	if in.Key != nil {
		x.cause("key",
			in.Key).
			fix("put audit.key back from a backup of %s; without it nothing can be written, and no log be verified",
				dir)
	}
}

func (x *exam) schema(in *sqlite.Inspection) {
	have, want := strconv.FormatInt(in.Schema, 10), strconv.FormatInt(in.Newest, 10)
	switch {
	case in.Schema == 0 || in.Err != nil: // empty; said
	case in.Schema < in.Newest:
		x.warn("schema", "schema %s; this program writes %s, and the next run brings it there after a backup", have,
			want).run("regie run")
	default:
		x.fine("schema", "schema %s, this program's", have)
	}
}

// health says what the check of the whole file found.
func (x *exam) health(in *sqlite.Inspection, dir string) {
	switch {
	case len(in.Damage) > 0:
		f := x.fail("check", "the database is damaged: %s", strings.Join(in.Damage, "; ")).about(in.Path)
		f.Code = regie.CodeCorrupt
		restore(f, dir, in.Backups)
	case !in.Checked && in.Size > 0:
		x.warn("check", "the check did not end within %s; as far as it came, all is well",
			short(x.CheckTime)).fix("run regie doctor again when less is going on")
	case in.Checked:
		x.fine("check", "whole (quick_check)")
	}
}

// restore says how a backup takes the place of a broken database; without one, how to begin anew
// and lose nothing that is there.
func restore(f *Finding, dir string, backups []string) {
	path := filepath.Join(dir, sqlite.FileName)
	if len(backups) == 0 {
		f.fix("there is no backup beside it: restore your own backup of %s", dir)
		f.fix("or begin anew and keep what is there: mv %s %s", quote(dir), quote(dir+".broken"))
		return
	}
	broken := filepath.Join(dir, "broken-"+time.Now().UTC().Format("20060102T150405"))
	f.fix("put the newest backup in its place: mkdir %s && mv %s* %s && cp %s %s",
		quote(broken), quote(path), quote(broken),
		quote(filepath.Join(broken, backups[0])), quote(path))
}

// holders names other programs that have the database open. SQLite has a lock of each, and of one
// that keeps everybody else out.
func (x *exam) holders(in *sqlite.Inspection, state EngineState) {
	for _, h := range holders(in.Path) {
		if strconv.Itoa(h.pid) == state.PID || h.pid == os.Getpid() {
			continue
		}
		who := strconv.Itoa(h.pid)
		if h.exclusive {
			f := x.fail("locked", "process %s (%s) keeps everybody else out of the database", who, h.name).about(who)
			f.Code = regie.CodeDatabaseLocked
			f.fix("close that program, or end it: kill %s", who)
		} else if !state.Running {
			x.warn("locked", "process %s (%s) has the database open too", who,
				h.name).about(who).fix("close it before you copy or move the database")
		}
	}
}

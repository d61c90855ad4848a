package sqlite

import (
	"context"
	_ "embed" // the selects of the roll-ups
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// rollUp is a table of roll-ups, which is what its select says of the rounds that ended. The
// transition that ends a round adds its own part; VerifyStats compares all of it, and RebuildStats
// writes it anew. The order is that of the key, so that transitions of several engines lock the
// rows in one order.
type rollUp struct{ table, key, values, query string }

var (
	//go:embed rollups/rounds.sql
	roundsSQL string
	//go:embed rollups/tools.sql
	toolsSQL string

	roundStats = rollUp{
		"round_stats", "hour, workspace_id, agent, model, end_reason",
		"rounds, relaunches, calls, duplicates, loops, input, output, cache_read, cache_hits, history, cost", roundsSQL,
	}
	toolStats = rollUp{"tool_stats", "workspace_id, tool, bucket, hour", "calls, succeeded, unknown", toolsSQL}

	rollUps       = []rollUp{roundStats, toolStats}
	addRoundStats = roundStats.addOne()
	addToolStats  = toolStats.addOne()
)

// insert returns the statement that writes the whole table.
func (r rollUp) insert() string {
	return "INSERT INTO " + r.table + " (" + r.key + ", " + r.values + ") " + r.query
}

// addOne returns the statement that adds one round.
func (r rollUp) addOne() string {
	var sets []string
	for column := range strings.SplitSeq(r.values, ", ") {
		sets = append(sets, column+" = "+r.table+"."+column+" + excluded."+column)
	}
	return strings.ReplaceAll(r.insert(), "(r.id = ?1 OR ?1 IS NULL)", "r.id = ?1") + " ORDER BY 1, 2, 3, 4 ON CONFLICT (" +
		r.key + ") DO UPDATE SET " + strings.Join(sets, ", ")
}

// addRollUps adds a round that ends to the roll-ups of its hour.
func (t roundTx) addRollUps(round regie.ID) {
	t.exec(addRoundStats, round)
	t.exec(addToolStats, round)
}

// RebuildStats writes the roll-ups anew from the rounds that are stored.
func (s statStore) RebuildStats(ctx context.Context) error {
	return s.writer.do(ctx, func(t *tx) error {
		for _, r := range rollUps {
			t.exec("DELETE FROM " + r.table + " WHERE hour IS NOT NULL")
			t.exec(r.insert(), nil)
		}
		return nil
	})
}

// VerifyStats compares the roll-ups with the rounds. It returns CodeChainBroken and names the first
// hour that differs.
func (s statStore) VerifyStats(ctx context.Context) error {
	return s.readOnce(ctx, func(ctx context.Context, q querier) error {
		for _, r := range rollUps {
			stored := "SELECT " + r.key + ", " + r.values + " FROM " + r.table
			var hour, rows int64
			err := q.QueryRowContext(ctx, "SELECT coalesce(min(hour), 0), count(*) FROM (SELECT * FROM ("+stored+" EXCEPT "+r.query+
				") AS more UNION ALL SELECT * FROM ("+r.query+" EXCEPT "+stored+") AS less) AS differ", nil).Scan(&hour, &rows)
			if err == nil && rows > 0 {
				err = regie.Errorf(regie.CodeChainBroken,
					"the roll-ups of the dashboard differ from the log since %s: write them anew with regie stats --rebuild",
					time.Unix(hour*3600, 0).Format("2006-01-02 15:04"))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// statGroups are the expressions that the roll-ups are grouped by; none is "".
var statGroups = map[string]string{
	"": "substr(x.agent, 1, 0)", "agent": "x.agent", "model": "x.model",
	"workspace": "(SELECT w.name FROM workspaces w WHERE w.id = x.workspace_id)",
}

// inPeriod selects the roll-ups of the workspace at root, or of all for "", between two hours.
const inPeriod = " WHERE x.hour >= ?1 AND x.hour < ?2 AND (x.workspace_id = (SELECT id FROM workspaces WHERE root = ?3) OR ?3 = '')"

// RollUps returns the roll-ups of the workspace at root, or of all for "", between two times, with
// their groups. It adds nothing up, because sorting would take longer than reading.
func (s statStore) RollUps(ctx context.Context, root, group string, from, to time.Time) ([]store.RollUp, error) {
	return queryList(ctx, s.read, func(row scanner, r *store.RollUp) error {
		var hour int64
		into := []any{&hour, &r.Group, &r.End}
		for _, field := range r.Fields() {
			into = append(into, field)
		}
		err := row.Scan(into...)
		r.Hour = time.Unix(hour*3600, 0)
		return err
	}, "SELECT x.hour, "+statGroups[group]+", x.end_reason, "+roundStats.values+" FROM round_stats x"+inPeriod,
		hourOf(from), hourOf(to.Add(time.Hour-1)), root)
}

// RoundsBetween returns how many rounds ended between two times.
func (s statStore) RoundsBetween(ctx context.Context, root string, from, to time.Time) (rounds int64, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT CAST(coalesce(sum(x.rounds), 0) AS BIGINT) FROM round_stats x"+inPeriod, hourOf(from), hourOf(to), root).
		Scan(&rounds)
	return rounds, err
}

// ToolCounts returns the calls of tools between two times, as RollUps, by tool and bucket. The
// inner groups are in the order of the table and need no sorting.
func (s statStore) ToolCounts(ctx context.Context, root string, from, to time.Time) ([]store.ToolCount, error) {
	return queryList(ctx, s.read, func(row scanner, c *store.ToolCount) error {
		return row.Scan(&c.Tool, &c.Bucket, &c.Calls, &c.Succeeded, &c.Unknown)
	}, `SELECT tool, bucket, sum(calls), sum(succeeded), sum(unknown) FROM (
			SELECT x.tool, x.bucket, sum(x.calls) AS calls, sum(x.succeeded) AS succeeded, sum(x.unknown) AS unknown FROM tool_stats x`+inPeriod+`
			GROUP BY x.workspace_id, x.tool, x.bucket) AS one GROUP BY tool, bucket ORDER BY tool, bucket`,
		hourOf(from), hourOf(to.Add(time.Hour-1)), root)
}

func hourOf(at time.Time) int64 { return at.Unix() / 3600 }

// DayCosts returns what each day cost from a day on, in the workspace at root or in all for "".
func (s statStore) DayCosts(ctx context.Context, root string, from time.Time) ([]store.DayCost, error) {
	return queryList(ctx, s.read, func(row scanner, d *store.DayCost) error { return row.Scan(&d.Day, &d.Cost) },
		`SELECT p.day, sum(p.spent_microusd) FROM spending p JOIN workspaces w ON w.id = p.owner
			WHERE p.day >= ?1 AND (w.root = ?2 OR ?2 = '') GROUP BY p.day ORDER BY p.day`, dayOf(from), root)
}

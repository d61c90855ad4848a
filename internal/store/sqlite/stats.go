package sqlite

import (
	"context"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// The roll-ups are what these two selects say of the rounds that ended. The transition that ends a
// round adds its own part; verify compares all of it, and RebuildStats writes it anew. Their order
// is that of the keys, so that transitions of several engines lock the rows in one order.
const (
	roundColumnsOfStats = "rounds, relaunches, calls, duplicates, loops, input, output, cache_read, cache_hits, history, cost"

	roundStatsOf = `SELECT hour, workspace_id, agent, model, end_reason, count(*) AS rounds, sum(relaunches) AS relaunches,
			sum(calls) AS calls, sum(duplicates) AS duplicates, sum(loops) AS loops, sum(input) AS input, sum(output) AS output,
			sum(cache_read) AS cache_read, sum(cache_hits) AS cache_hits, sum(history) AS history, sum(cost) AS cost
		FROM (SELECT r.ended_at / 3600000000 AS hour, s.workspace_id, r.agent, r.model, r.end_reason, r.spent_microusd AS cost,
				sum(CASE WHEN e.number > 1 AND e.purpose = 'step' THEN 1 ELSE 0 END) AS relaunches, coalesce(sum(m.calls), 0) AS calls,
				sum((SELECT count(*) FROM calls c WHERE c.message_id = m.id AND c.code IN ('DUPLICATE_IN_BATCH', 'CACHED'))) AS duplicates,
				sum((SELECT count(*) FROM calls c WHERE c.message_id = m.id AND c.code IN ('ANTI_LOOP', 'REPEATED_FAILURE'))) AS loops,
				coalesce(sum(e.input_tokens), 0) AS input, coalesce(sum(e.output_tokens), 0) AS output,
				coalesce(sum(e.cache_read_tokens), 0) AS cache_read, coalesce(sum(e.cached), 0) AS cache_hits,
				coalesce(max(e.input_tokens), 0) AS history
			FROM rounds r JOIN sessions s ON s.n = r.session LEFT JOIN exchanges e ON e.round_id = r.id AND e.state = 'REPLIED'
				LEFT JOIN messages m ON m.id = e.reply_id
			WHERE r.state = 'ENDED' AND (r.id = ?1 OR ?1 IS NULL)
			GROUP BY r.id, s.workspace_id) AS ended
		GROUP BY hour, workspace_id, agent, model, end_reason`

	// What a person found out later about an unknown outcome changes nothing here. A client's own
	// tools ran elsewhere.
	toolStatsOf = `SELECT hour, workspace_id, tool, state, bucket, count(*) AS calls
		FROM (SELECT r.ended_at / 3600000000 AS hour, s.workspace_id, CASE WHEN c.definition IS NULL THEN '' ELSE c.tool END AS tool,
				CASE WHEN c.resolved_at IS NULL THEN c.state ELSE 'UNKNOWN' END AS state,
				3 * length(CAST(coalesce(c.duration_us, 0) AS TEXT)) + CASE WHEN substr(CAST(coalesce(c.duration_us, 0) AS TEXT), 1, 1) >= '5' THEN 2
					WHEN substr(CAST(coalesce(c.duration_us, 0) AS TEXT), 1, 1) >= '2' THEN 1 ELSE 0 END AS bucket
			FROM rounds r JOIN sessions s ON s.n = r.session JOIN exchanges e ON e.round_id = r.id AND e.state = 'REPLIED'
				JOIN calls c ON c.message_id = e.reply_id
			WHERE r.state = 'ENDED' AND (r.id = ?1 OR ?1 IS NULL)
				AND c.origin <> 'CLIENT' AND c.state IN ('SUCCEEDED', 'FAILED', 'UNKNOWN')) AS ran
		GROUP BY hour, workspace_id, tool, state, bucket`
)

// ofOneRound narrows a select of the roll-ups to one round, by its key.
func ofOneRound(query string) string {
	return strings.ReplaceAll(query, "(r.id = ?1 OR ?1 IS NULL)", "r.id = ?1")
}

var (
	addRoundStats = `INSERT INTO round_stats (hour, workspace_id, agent, model, end_reason, ` + roundColumnsOfStats + ") " +
		ofOneRound(roundStatsOf) + " ON CONFLICT (hour, workspace_id, agent, model, end_reason) DO UPDATE SET " +
		addExcluded("round_stats", roundColumnsOfStats)
	addToolStats = "INSERT INTO tool_stats (hour, workspace_id, tool, state, bucket, calls) " + ofOneRound(toolStatsOf) +
		" ORDER BY 1, 2, 3, 4, 5 ON CONFLICT (hour, workspace_id, tool, state, bucket) DO UPDATE SET " +
		addExcluded("tool_stats", "calls")
)

// addExcluded returns the assignments of an upsert that adds the columns of the new row.
func addExcluded(table, columns string) string {
	var sets []string
	for column := range strings.SplitSeq(columns, ", ") {
		sets = append(sets, column+" = "+table+"."+column+" + excluded."+column)
	}
	return strings.Join(sets, ", ")
}

// addRollUps adds a round that ends to the roll-ups of its hour.
func (t roundTx) addRollUps(round regie.ID) {
	t.exec(addRoundStats, round)
	t.exec(addToolStats, round)
}

// RebuildStats writes the roll-ups anew from the rounds that are stored.
func (s statStore) RebuildStats(ctx context.Context) error {
	return s.writer.do(ctx, func(t *tx) error {
		t.exec("DELETE FROM round_stats WHERE hour IS NOT NULL")
		t.exec("DELETE FROM tool_stats WHERE hour IS NOT NULL")
		t.exec("INSERT INTO round_stats (hour, workspace_id, agent, model, end_reason, "+roundColumnsOfStats+") "+roundStatsOf, nil)
		t.exec("INSERT INTO tool_stats (hour, workspace_id, tool, state, bucket, calls) "+toolStatsOf, nil)
		return nil
	})
}

// VerifyStats compares the roll-ups with the rounds. It returns CodeChainBroken and names the first
// hour that differs.
func (s statStore) VerifyStats(ctx context.Context) error {
	return s.readOnce(ctx, func(ctx context.Context, q querier) error {
		for _, pair := range [][2]string{
			{"SELECT hour, workspace_id, agent, model, end_reason, " + roundColumnsOfStats + " FROM round_stats", roundStatsOf},
			{"SELECT hour, workspace_id, tool, state, bucket, calls FROM tool_stats", toolStatsOf},
		} {
			table, want := pair[0], pair[1]
			var hour, rows int64
			err := q.QueryRowContext(ctx, "SELECT coalesce(min(hour), 0), count(*) FROM (SELECT * FROM ("+table+" EXCEPT "+want+
				") AS more UNION ALL SELECT * FROM ("+want+" EXCEPT "+table+") AS less) AS differ", nil).Scan(&hour, &rows)
			if err != nil {
				return err
			}
			if rows > 0 {
				return regie.Errorf(regie.CodeChainBroken,
					"the roll-ups of the dashboard differ from the log since %s: write them anew with regie stats --rebuild",
					time.Unix(hour*3600, 0).Format("2006-01-02 15:04"))
			}
		}
		return nil
	})
}

// statGroups are the expressions of what the roll-ups are grouped by.
var statGroups = map[string]string{"agent": "x.agent", "model": "x.model", "workspace": "w.name"}

// RollUps returns the roll-ups of the workspace at root, or of all for "", between two times, by
// hour, group and end reason.
func (s statStore) RollUps(ctx context.Context, root, group string, from, to time.Time) ([]store.RollUp, error) {
	by, ok := statGroups[group]
	if !ok {
		by = "substr(x.agent, 1, 0)"
	}
	return queryList(ctx, s.read, func(row scanner, r *store.RollUp) error {
		var hour int64
		err := row.Scan(append([]any{&hour, &r.Group, &r.End}, r.Fields()...)...)
		r.Hour = time.Unix(hour*3600, 0)
		return err
	}, "SELECT x.hour, "+by+", x.end_reason, sum(x."+strings.ReplaceAll(roundColumnsOfStats, ", ", "), sum(x.")+`)
		FROM round_stats x JOIN workspaces w ON w.id = x.workspace_id
		WHERE x.hour >= ?1 AND x.hour < ?2 AND (w.root = ?3 OR ?3 = '') GROUP BY x.hour, `+by+", x.end_reason ORDER BY x.hour",
		hourOf(from), hourOf(to.Add(time.Hour-1)), root)
}

// ToolCounts returns the calls of tools between two times, as RollUps.
func (s statStore) ToolCounts(ctx context.Context, root string, from, to time.Time) ([]store.ToolCount, error) {
	return queryList(ctx, s.read, func(row scanner, c *store.ToolCount) error {
		return row.Scan(&c.Tool, &c.State, &c.Bucket, &c.Calls)
	}, `SELECT x.tool, x.state, x.bucket, sum(x.calls) FROM tool_stats x JOIN workspaces w ON w.id = x.workspace_id
		WHERE x.hour >= ?1 AND x.hour < ?2 AND (w.root = ?3 OR ?3 = '') GROUP BY x.tool, x.state, x.bucket ORDER BY x.tool, x.state, x.bucket`,
		hourOf(from), hourOf(to.Add(time.Hour-1)), root)
}

func hourOf(at time.Time) int64 { return at.Unix() / 3600 }

// DayCosts returns what each day cost from a day on, in the workspace at root or in all for "".
func (s statStore) DayCosts(ctx context.Context, root string, from time.Time) ([]store.DayCost, error) {
	return queryList(ctx, s.read, func(row scanner, d *store.DayCost) error { return row.Scan(&d.Day, &d.Cost) },
		`SELECT p.day, sum(p.spent_microusd) FROM spending p JOIN workspaces w ON w.id = p.owner
			WHERE p.day >= ?1 AND (w.root = ?2 OR ?2 = '') GROUP BY p.day ORDER BY p.day`, dayOf(from), root)
}

-- +goose Up
-- +goose StatementBegin
-- Roll-ups by the hour in which rounds ended (hours since 1970, UTC). The transition that ends a
-- round adds it; verify compares them with the rounds.
ALTER TABLE exchanges ADD COLUMN cached INTEGER NOT NULL DEFAULT 0; -- 1: the response cache answered

CREATE TABLE round_stats (
    hour         INTEGER NOT NULL,
    workspace_id BLOB    NOT NULL,
    agent        TEXT    NOT NULL,
    model        TEXT    NOT NULL,
    end_reason   TEXT    NOT NULL,
    rounds       INTEGER NOT NULL,
    relaunches   INTEGER NOT NULL,
    calls        INTEGER NOT NULL,
    duplicates   INTEGER NOT NULL,
    loops        INTEGER NOT NULL,
    input        INTEGER NOT NULL,
    output       INTEGER NOT NULL,
    cache_read   INTEGER NOT NULL,
    cache_hits   INTEGER NOT NULL,
    history      INTEGER NOT NULL,
    cost         INTEGER NOT NULL,
    PRIMARY KEY (hour, workspace_id, agent, model, end_reason)
) STRICT, WITHOUT ROWID;

-- Calls that ran, in the order in which the tools are read. Bucket 3k, 3k + 1 and 3k + 2 begin at 1, 2 and 5 times 10^(k - 1) µs.
CREATE TABLE tool_stats (
    workspace_id BLOB    NOT NULL,
    tool         TEXT    NOT NULL,
    bucket       INTEGER NOT NULL,
    hour         INTEGER NOT NULL,
    calls        INTEGER NOT NULL,
    succeeded    INTEGER NOT NULL,
    unknown      INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, tool, bucket, hour)
) STRICT, WITHOUT ROWID;

-- The rounds that had ended before.
INSERT INTO round_stats (hour, workspace_id, agent, model, end_reason, rounds, relaunches, calls, duplicates, loops, input, output, cache_read, cache_hits, history, cost)
SELECT hour, workspace_id, agent, model, end_reason, count(*) AS rounds, sum(relaunches) AS relaunches,
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
    WHERE r.state = 'ENDED'
    GROUP BY r.id, s.workspace_id) AS ended
    GROUP BY hour, workspace_id, agent, model, end_reason;
INSERT INTO tool_stats (workspace_id, tool, bucket, hour, calls, succeeded, unknown)
SELECT workspace_id, tool, bucket, hour, count(*) AS calls, sum(CASE WHEN state = 'SUCCEEDED' THEN 1 ELSE 0 END) AS succeeded,
    sum(CASE WHEN state = 'UNKNOWN' THEN 1 ELSE 0 END) AS unknown
    FROM (SELECT r.ended_at / 3600000000 AS hour, s.workspace_id, CASE WHEN c.definition IS NULL THEN '' ELSE c.tool END AS tool,
    CASE WHEN c.resolved_at IS NULL THEN c.state ELSE 'UNKNOWN' END AS state,
    3 * length(CAST(coalesce(c.duration_us, 0) AS TEXT)) + CASE WHEN substr(CAST(coalesce(c.duration_us, 0) AS TEXT), 1, 1) >= '5' THEN 2
    WHEN substr(CAST(coalesce(c.duration_us, 0) AS TEXT), 1, 1) >= '2' THEN 1 ELSE 0 END AS bucket
    FROM rounds r JOIN sessions s ON s.n = r.session JOIN exchanges e ON e.round_id = r.id AND e.state = 'REPLIED'
    JOIN calls c ON c.message_id = e.reply_id
    WHERE r.state = 'ENDED'
    AND c.origin <> 'CLIENT' AND c.state IN ('SUCCEEDED', 'FAILED', 'UNKNOWN')) AS ran
    GROUP BY workspace_id, tool, bucket, hour;
-- +goose StatementEnd

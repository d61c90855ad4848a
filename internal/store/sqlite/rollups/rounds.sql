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
    WHERE r.state = 'ENDED' AND (r.id = ?1 OR ?1 IS NULL)
    GROUP BY r.id, s.workspace_id) AS ended
GROUP BY hour, workspace_id, agent, model, end_reason

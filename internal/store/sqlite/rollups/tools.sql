SELECT workspace_id, tool, bucket, hour, count(*) AS calls, sum(CASE WHEN state = 'SUCCEEDED' THEN 1 ELSE 0 END) AS succeeded,
    sum(CASE WHEN state = 'UNKNOWN' THEN 1 ELSE 0 END) AS unknown
FROM (SELECT r.ended_at / 3600000000 AS hour, s.workspace_id, CASE WHEN c.definition IS NULL THEN '' ELSE c.tool END AS tool,
        CASE WHEN c.resolved_at IS NULL THEN c.state ELSE 'UNKNOWN' END AS state,
        3 * length(CAST(coalesce(c.duration_us, 0) AS TEXT)) + CASE WHEN substr(CAST(coalesce(c.duration_us, 0) AS TEXT), 1, 1) >= '5' THEN 2
            WHEN substr(CAST(coalesce(c.duration_us, 0) AS TEXT), 1, 1) >= '2' THEN 1 ELSE 0 END AS bucket
    FROM rounds r JOIN sessions s ON s.n = r.session JOIN exchanges e ON e.round_id = r.id AND e.state = 'REPLIED'
        JOIN calls c ON c.message_id = e.reply_id
    WHERE r.state = 'ENDED' AND (r.id = ?1 OR ?1 IS NULL)
        AND c.origin <> 'CLIENT' AND c.state IN ('SUCCEEDED', 'FAILED', 'UNKNOWN')) AS ran
GROUP BY workspace_id, tool, bucket, hour

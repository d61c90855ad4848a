-- The DATA_ADDED of a person's enrichments owns their queries, as a reply owns the calls that it proposes (decision 46): calls and message
-- come together, so that nothing half done is ever stored.

-- +goose Up

-- +goose StatementBegin
DO $$
DECLARE name text;
BEGIN
    SELECT conname INTO STRICT name FROM pg_constraint
        WHERE conrelid = 'messages'::regclass AND contype = 'c' AND pg_get_constraintdef(oid) LIKE '%calls = 0%';
    EXECUTE format('ALTER TABLE messages DROP CONSTRAINT %I', name);
END $$;
-- +goose StatementEnd
ALTER TABLE messages ADD CONSTRAINT messages_own_calls CHECK (calls = 0 OR variant IN ('ai', 'rich') OR coalesce(system_type, '') = 'DATA_ADDED');

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/regie-run/regie"
)

// EnsureUser returns the user of that name, and makes a missing one (spec 11.2: single-user by
// default).
func (s sessionStore) EnsureUser(ctx context.Context, name string) (regie.User, error) {
	user := regie.User{ID: regie.NewID(), Name: name, CreatedAt: time.Now().UTC()}
	err := s.writer.do(ctx, func(t *tx) error {
		err := t.row("SELECT id, created_at FROM users WHERE name = ?", name).Scan(&user.ID, &user.CreatedAt)
		if errors.Is(err, sql.ErrNoRows) {
			t.exec("INSERT INTO users (id, name, created_at) VALUES (?, ?, ?)", user.ID, name, user.CreatedAt.UnixMicro())
		}
		return unlessFound(err, nil)
	})
	return user, err
}

// EnsureWorkspace returns the workspace with that root, and makes a missing one, owned by the user
// (spec 8.1).
func (s sessionStore) EnsureWorkspace(ctx context.Context, owner regie.ID,
	workspace regie.Workspace,
) (regie.Workspace, error) {
	workspace.ID, workspace.CreatedAt = regie.NewID(), time.Now().UTC()
	err := s.writer.do(ctx, func(t *tx) error {
		err := t.row("SELECT id, name, found_by, created_at FROM workspaces WHERE root = ?", workspace.Root).
			Scan(&workspace.ID, &workspace.Name, &workspace.FoundBy, &workspace.CreatedAt)
		if errors.Is(err, sql.ErrNoRows) {
			t.exec("INSERT INTO workspaces (id, name, root, found_by, created_at) VALUES (?, ?, ?, ?, ?)",
				workspace.ID, workspace.Name, nullIfEmpty(workspace.Root), workspace.FoundBy, workspace.CreatedAt.UnixMicro())
			t.exec("INSERT INTO members (workspace_id, user_id, role) VALUES (?, ?, 'owner')", workspace.ID, owner)
		}
		return unlessFound(err, nil)
	})
	return workspace, err
}

// CreateSession stores a new session. Its chain begins with an event of its creation.
func (s sessionStore) CreateSession(ctx context.Context, session regie.Session) (regie.Session, error) {
	if session.ID.IsZero() {
		session.ID = regie.NewID()
	}
	create := newSession(&session, time.Now().UTC())
	return create.session, s.writer.do(ctx, func(t *tx) error {
		made, chain, err := t.sessions.insertSession(create, "", 0)
		if err != nil || !made {
			return err
		}
		t.appendEvents(session.ID, chain, create.session.CreatedAt, create.event)
		return nil
	})
}

// creation is a session on its way into the store.
type creation struct {
	session regie.Session
	event   logEvent
}

func newSession(session *regie.Session, now time.Time) *creation {
	if session == nil {
		return nil
	}
	c := &creation{session: *session}
	c.session.State, c.session.CreatedAt, c.session.LastActivity = regie.SessionIdle, now, now
	c.event = newEvent(regie.EventSession, c.session)
	return c
}

// insertSession stores a session unless it exists, and reports whether it did. With an epoch the
// session is active from the start. The caller appends its event.
func (t sessionTx) insertSession(c *creation, holder string, epoch int64) (made bool, chain int64, err error) {
	session, at, state := &c.session, c.session.CreatedAt, regie.SessionIdle
	if epoch > 0 {
		state = regie.SessionActive
	}
	if made, chain, err = t.insertChain(session.ID, at); err != nil || !made {
		return false, 0, err
	}
	t.exec(`INSERT INTO sessions (n, id, workspace_id, user_id, agent, agent_version, name, type, provider, model, require_validation, approval_mode, state, epoch, lease_holder, created_at, token_id, tainted, origin)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, 'local'))`, chain, session.ID, session.WorkspaceID, session.UserID, session.Agent, session.AgentVersion, session.Name,
		string(session.Type), session.Provider, session.Model, boolToInt(session.RequireValidation), string(session.ApprovalMode), string(state), epoch,
		nullIfEmpty(holder), at.UnixMicro(),
		session.TokenID, boolToInt(session.Tainted), nullIfEmpty(session.Origin))
	return true, chain, nil
}

// insertChain begins a session's log unless it exists, and reports whether it did.
func (t sessionTx) insertChain(session regie.ID, at time.Time) (made bool, chain int64, err error) {
	// The schema refuses a second row before SQLite would look at ON CONFLICT.
	var there bool
	if err := t.row(
		"SELECT EXISTS (SELECT 1 FROM chains WHERE owner_id = ?), (SELECT coalesce(max(n), 0) + 1 FROM chains)",
		session).
		Scan(&there, &chain); err != nil || there {
		return false, 0, err
	}
	t.makeChain(chain, "session", session, at)
	return true, chain, nil
}

// PutBlob stores content under its SHA-256; storing it again changes nothing (decision 18).
func (s sessionStore) PutBlob(ctx context.Context, data []byte) (regie.Hash, error) {
	hash, now := regie.HashOf(data), time.Now()
	var there bool // and noted so lately that no removal erases it soon
	err := s.read.QueryRowContext(ctx,
		"SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = ? AND data IS NOT NULL AND noted_at > ?)", hash,
		now.Add(-lately/2).UnixMicro()).Scan(&there)
	if err != nil || there {
		return hash, err
	}
	return hash, s.writer.do(ctx, func(t *tx) error {
		t.exec(`INSERT INTO blobs (hash, size, data, created_at, noted_at) VALUES (?1, ?2, ?3, ?4, ?4)
			ON CONFLICT (hash) DO UPDATE SET data = coalesce(blobs.data, excluded.data), noted_at = excluded.noted_at`,
			hash, len(data), append([]byte{}, data...), now.UnixMicro())
		return nil
	})
}

// Blob returns stored content, or CodeNotFound.
func (s sessionStore) Blob(ctx context.Context, hash regie.Hash) ([]byte, error) {
	var data []byte
	err := s.read.QueryRowContext(ctx, "SELECT data FROM blobs WHERE hash = ? AND data IS NOT NULL", hash).Scan(&data)
	return data, unlessFound(err, regie.Errorf(regie.CodeNotFound, "there is no blob %s", hash))
}

// Mode returns the mode of a session (decision 71), empty for a session that is not there.
func (s sessionStore) Mode(ctx context.Context, session regie.ID) (mode regie.Mode, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT approval_mode FROM sessions WHERE id = ?", session).Scan(&mode)
	return mode, unlessFound(err, nil)
}

// SetMode sets the mode of a session, and logs who did. The same mode again changes nothing.
func (s sessionStore) SetMode(ctx context.Context, session regie.ID, mode regie.Mode, by string) error {
	now := time.Now().UTC()
	return s.writer.do(ctx, func(t *tx) error { return t.sessions.setMode(session, mode, by, now) })
}

// modeEvent is the body of the event of a session that got another mode.
type modeEvent struct {
	regie.Session
	By string `json:"by"`
}

func (t sessionTx) setMode(session regie.ID, mode regie.Mode, by string, now time.Time) error {
	held, found, err := t.readHeld(session)
	if err != nil || found.ApprovalMode == mode {
		return err
	}
	found.ApprovalMode = mode
	t.exec("UPDATE sessions SET approval_mode = ? WHERE n = ?", string(mode), held.chain)
	t.appendEvent(session, held.chain, now, regie.EventSession, modeEvent{Session: found, By: by})
	return nil
}

// readHeld holds the log of a session, and reads the session.
func (t sessionTx) readHeld(id regie.ID) (held heldSession, s regie.Session, err error) {
	if held, err = t.holdSession(id); err != nil {
		return held, s, err
	}
	err = scanSession(t.row("SELECT "+sessionColumns+
		" FROM sessions s JOIN chains c ON c.n = s.n WHERE s.n = ?", held.chain), &s)
	return held, s, err
}

// MarkRead advances how far a user has read a session; it never goes back (decision 45).
func (s sessionStore) MarkRead(ctx context.Context, mark regie.ReadMark) error {
	return s.writer.do(ctx, func(t *tx) error {
		s, err := t.holdSession(mark.SessionID)
		if err != nil {
			return err
		}
		if mark.Seq > s.head {
			return regie.Errorf(regie.CodeBadRequest, "the session ends at %d, it cannot have been read up to %d", s.head,
				mark.Seq)
		}
		if t.count(`INSERT INTO read_marks (user_id, session, read_seq) VALUES (?, ?, ?) ON CONFLICT (user_id, session)
			DO UPDATE SET read_seq = excluded.read_seq WHERE read_marks.read_seq < excluded.read_seq`, mark.UserID, s.chain, mark.Seq) > 0 {
			t.announceLists()
		}
		return nil
	})
}

// announceLists has watchers look at all sessions anew: what has changed is in no log.
func (t *tx) announceLists() { t.notices[regie.ID{}] = nil }

func notFound(what string, id regie.ID) error {
	return regie.Errorf(regie.CodeNotFound, "there is no %s %s here", what, id)
}

// Workspaces lists the workspaces, by name.
func (s sessionStore) Workspaces(ctx context.Context) ([]regie.Workspace, error) {
	return queryList(ctx, s.read, func(row scanner, w *regie.Workspace) error {
		return row.Scan(&w.ID, &w.Name, &w.Root, &w.FoundBy, &w.CreatedAt)
	}, "SELECT id, name, root, found_by, created_at FROM workspaces ORDER BY name, id")
}

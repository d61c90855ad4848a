package app

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/demo"
	"github.com/regie-run/regie/internal/provider/replay"
	"github.com/regie-run/regie/internal/provider/responses"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// maxName bounds a session's name in characters.
const maxName = 200

// Sessions implements dispatch.Sessions. Whose read marks count is the person who runs this process
// (spec 11.2).
func (l *local) Sessions(ctx context.Context, filter store.SessionFilter) ([]store.SessionSummary, error) {
	var err error
	if filter.UserID, err = l.store.UserNamed(ctx, userName()); err != nil {
		return nil, err
	}
	return l.store.Sessions(ctx, filter)
}

// Session implements dispatch.Sessions. Its log is verified on the way.
func (l *local) Session(ctx context.Context, session regie.ID) (store.SessionView, error) {
	user, err := l.store.UserNamed(ctx, userName())
	if err != nil {
		return store.SessionView{}, err
	}
	view, err := l.store.SessionView(ctx, session, user)
	if err != nil {
		return view, err
	}
	if view.Mode, err = l.mode(ctx, view.UserID); err != nil {
		return view, err
	}
	report, err := l.store.Verify(ctx, session)
	if regie.CodeOf(err) == regie.CodeChainBroken {
		view.AuditError = err.Error()
		return view, nil
	}
	view.Audit = &report
	return view, err
}

// Messages implements dispatch.Sessions.
func (l *local) Messages(ctx context.Context, in dispatch.MessagesRequest) ([]store.MessageView, error) {
	if _, _, err := l.store.Session(ctx, in.SessionID); err != nil {
		return nil, err
	}
	thread, err := l.store.Thread(ctx, in.SessionID, in.After)
	out := []store.MessageView{}
	messages, limit := thread.Messages, cmp.Or(in.Limit, 1000)
	if in.Before > 0 {
		at, _ := slices.BinarySearchFunc(messages, in.Before, func(m regie.Message, seq int64) int {
			return cmp.Compare(m.Seq, seq)
		})
		messages = messages[max(0, at-limit):at]
	}
	for i := range messages[:min(limit, len(messages))] {
		m := &messages[i]
		out = append(out, store.MessageView{
			Seq: m.Seq, Time: m.Time, Message: *m,
			Calls: thread.Calls[m.ID], Superseded: m.Superseded,
		})
	}
	return out, err
}

// mayStore reports why this process changes nothing, or nil.
func (l *local) mayStore() error {
	if l.readOnly && !l.storeOnly {
		return errRunsNothing
	}
	return nil
}

// Fork implements dispatch.Sessions.
func (l *local) Fork(ctx context.Context, in dispatch.ForkRequest) (store.Forked, error) {
	if err := l.mayStore(); err != nil {
		return store.Forked{}, err
	}
	if in.Name != "" {
		var err error
		if in.Name, err = sessionName(in.Name); err != nil {
			return store.Forked{}, err
		}
	}
	return l.store.Fork(ctx, store.Fork{
		SessionID: in.SessionID, From: in.From, At: in.At, Round: in.RoundID,
		Name: in.Name, TokenID: in.TokenID,
	})
}

// Remove implements dispatch.Sessions.
func (l *local) Remove(ctx context.Context, in dispatch.RemoveRequest) (store.Removed, error) {
	if err := l.mayStore(); err != nil {
		return store.Removed{}, err
	}
	_, place, missing := l.store.Session(ctx, in.SessionID) // of one that is removed already nothing is kept
	removed, err := l.store.Remove(ctx, store.Remove{SessionID: in.SessionID, By: plain.Strip(author(in.By))})
	if err == nil && l.engine != nil {
		l.engine.Forget(in.SessionID)
	}
	if err == nil && missing == nil {
		err = l.forgetPlace(ctx, place)
	}
	return removed, err
}

// forgetPlace removes what is kept of a workspace for commands, where its last session is gone.
func (l *local) forgetPlace(ctx context.Context, place regie.Workspace) error {
	left, err := l.store.Sessions(ctx, store.SessionFilter{Root: place.Root, Limit: 1, API: true})
	if err != nil || len(left) > 0 {
		return err
	}
	return l.snapshots.Forget(place.ID)
}

// Rename implements dispatch.Sessions.
func (l *local) Rename(ctx context.Context, in dispatch.RenameRequest) error {
	if err := l.mayStore(); err != nil {
		return err
	}
	name, err := sessionName(in.Name)
	if err != nil {
		return err
	}
	return l.store.Rename(ctx, in.SessionID, name)
}

// oneLine is a text on one line that does nothing to a terminal and hides nothing.
func oneLine(text string) string {
	shown := strings.Map(func(r rune) rune {
		if plain.Hidden(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, plain.Strip(text))
	return strings.Join(strings.Fields(shown), " ")
}

// sessionName is a name that somebody gives.
func sessionName(name string) (string, error) {
	name = oneLine(name)
	switch {
	case name == "":
		return "", regie.Errorf(regie.CodeBadRequest, "the name is empty")
	case utf8.RuneCountInString(name) > maxName:
		return "", regie.Errorf(regie.CodeBadRequest, "the name has more than %d characters", maxName)
	}
	return name, nil
}

// MarkRead implements dispatch.Sessions.
func (l *local) MarkRead(ctx context.Context, in dispatch.ReadRequest) error {
	if err := l.mayStore(); err != nil {
		return err
	}
	if in.Seq < 0 {
		return regie.Errorf(regie.CodeBadRequest, "%s must be a number from %d to %d", "read_seq", 0, int64(1)<<53)
	}
	user, err := l.user(ctx)
	if err != nil {
		return err
	}
	return l.store.MarkRead(ctx, regie.ReadMark{UserID: user.ID, SessionID: in.SessionID, Seq: in.Seq})
}

// Export implements dispatch.Sessions.
func (l *local) Export(ctx context.Context, session regie.ID) (store.SessionExport, error) {
	return l.store.Export(ctx, session)
}

// Verify implements dispatch.Sessions. A log that is not what was written does not keep the next
// one from being looked at.
func (l *local) Verify(ctx context.Context, filter store.LogFilter) ([]store.LogReport, error) {
	if filter.ID.IsZero() && filter.Short == "" { // one session is not worth a look at the whole file
		if err := l.store.CheckIntegrity(ctx); err != nil {
			return nil, err
		}
	}
	logs, err := l.store.Logs(ctx, filter)
	if err != nil {
		return nil, err
	}
	out := []store.LogReport{}
	for _, owner := range logs {
		report, err := l.store.Verify(ctx, owner.ID)
		line := store.LogReport{LogOwner: owner, VerifyReport: report}
		if regie.CodeOf(err) == regie.CodeChainBroken {
			line.Error = err.Error()
		} else if err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	return out, nil
}

// Replay implements dispatch.Sessions. Only the requests' hashes are kept, so where the settings of
// then are not configured here the ways in which a provider's requests differ by vendor are tried
// in turn: the right one is that under which the first request is what was sent.
func (l *local) Replay(ctx context.Context, round regie.ID) (dispatch.Replay, error) {
	out := dispatch.Replay{RoundID: round, Steps: []dispatch.ReplayStep{}}
	view, err := l.store.RoundView(ctx, round)
	if err != nil {
		return out, err
	}
	if _, err := l.store.Verify(ctx, view.Session.ID); err != nil {
		return out, err // what was tampered with is no evidence
	}
	thread, err := l.store.Thread(ctx, view.Session.ID, 0)
	if err != nil {
		return out, err
	}
	tools := l.tools(ctx)
	for i, codecs := range l.ways(view.Round) {
		rebuilt, err := engine.New(engine.Config{
			Store: l.store, Tools: func(context.Context) *tool.Registry { return tools }, Providers: codecs,
		}).Replay(ctx, view, thread)
		switch {
		case err != nil && i == 0:
			return out, err
		case err != nil: // a vendor that cannot have been asked so
			continue
		}
		if again := compared(view, rebuilt); i == 0 || again.Difference == 0 || out.Difference != 0 &&
			again.Difference > out.Difference {
			out = again
		}
		if out.Difference == 0 {
			break
		}
	}
	if out.Difference == 0 { // what was declared then is stored, whatever is there now
		return out, nil
	}
	for i := range view.Exchanges {
		for _, c := range view.Exchanges[i].Calls {
			if _, _, known := tools.Lookup(c.Tool); !known && c.NotRun != regie.NotRunOutOfScope &&
				!slices.Contains(out.Unknown, c.Tool) {
				out.Unknown = append(out.Unknown, c.Tool)
			}
		}
	}
	return out, nil
}

// compared sets rebuilt requests beside the recorded ones.
func compared(view store.RoundView, rebuilt []engine.Rebuilt) dispatch.Replay {
	out := dispatch.Replay{RoundID: view.Round.ID, Steps: []dispatch.ReplayStep{}}
	step := func(s dispatch.ReplayStep) {
		made := rebuilt[len(out.Steps)]
		s.Rebuilt, s.Bytes = made.Hash, made.Bytes
		out.Steps = append(out.Steps, s)
		switch {
		case s.Rebuilt == s.Recorded:
			out.Identical++
		case out.Difference == 0:
			out.Difference = s.Exchange
		}
	}
	for i := range view.Exchanges {
		e := &view.Exchanges[i]
		for j := range e.Attempts {
			a := &e.Attempts[j]
			if !engine.Rebuilds(a) {
				out.Skipped = append(out.Skipped, dispatch.ReplaySkip{
					Exchange: e.Number,
					Attempt:  a.Number, Recorded: a.Request,
				})
				continue
			}
			step(dispatch.ReplayStep{
				Exchange: e.Number, Attempt: a.Number, Recorded: a.Request,
				FirstSeq: a.FirstSeq, LastSeq: a.LastSeq,
			})
		}
		if e.State == regie.ExchangeReplied && !e.Request.IsZero() {
			cached := e.Reply != nil && e.Reply.AI != nil && !e.Reply.AI.Cached.IsZero()
			step(dispatch.ReplayStep{
				Exchange: e.Number, Recorded: e.Request, Calls: len(e.Calls), Cached: cached,
				FirstSeq: e.FirstSeq, LastSeq: e.LastSeq,
			})
		}
	}
	return out
}

// codecs are the ways in which a provider of that name may have written its requests, the
// configured one first. They have no key, and nothing sends what they write.
func (l *local) codecs(name string) []func() (provider.Provider, error) {
	switch name {
	case config.ProviderDemo:
		return []func() (provider.Provider, error){func() (provider.Provider, error) { return demo.New(), nil }}
	case config.ProviderReplay:
		return []func() (provider.Provider, error){func() (provider.Provider, error) { return replay.Silent(), nil }}
	}
	settings, configured := l.config.Named(name)
	settings.APIKey = ""
	made := func(s config.Provider) func() (provider.Provider, error) {
		return func() (provider.Provider, error) { return newProvider(s, l.config.File.Budget.ModelWindow) }
	}
	var out []func() (provider.Provider, error)
	// the others know where their own server is
	if configured && (settings.BaseURL != "" || settings.Type != config.ProviderOpenAI) {
		out = append(out, made(settings))
	}
	if settings.Type == config.ProviderOpenAI || settings.Type == "" {
		for _, vendor := range append([]string{""}, config.Vendors(config.ProviderOpenAI)...) {
			out = append(out, made(config.Provider{
				Name: name, Type: config.ProviderOpenAI, API: config.APIChat,
				Vendor: vendor, BaseURL: "http://127.0.0.1/v1",
			}))
		}
		out = append(out, made(config.Provider{
			Name: name, Type: config.ProviderOpenAI, API: config.APIResponses,
			BaseURL: responses.DefaultAddress,
		}))
	}
	for _, kind := range config.TypeNames(false) {
		if kind != config.ProviderOpenAI && !configured && (settings.Type == kind || settings.Type == "") {
			out = append(out, made(config.Provider{Name: name, Type: kind}))
		}
	}
	return out
}

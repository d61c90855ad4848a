package chat

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// MaxSeries bounds how many runs are undone together.
const MaxSeries = 100

// UndoSeries says which undos a person wants together.
type UndoSeries struct {
	// Names are runs and undos, in the order in which they are to be undone; none: the newest runs.
	Names []string
	// Runs is how many runs are meant where none is named; 0 is one. Back is a message, by its
	// number in the session or by its id, or a run: all that its session has done from there on.
	Runs int
	Back string
}

// UndoPlans plans the undos of a series, each as if those before it were done. It stops at the
// first in whose way something stands: nothing of a series is done then. Where there are fewer runs
// than are wanted it plans what there is.
func UndoPlans(ctx context.Context, control interface {
	PlanUndo(ctx context.Context, in dispatch.UndoRequest) (regie.UndoPlan, error)
	Session(ctx context.Context, session regie.ID) (store.SessionView, error)
}, in dispatch.UndoRequest, series UndoSeries,
) ([]regie.UndoPlan, error) {
	wanted := max(1, series.Runs, len(series.Names))
	if series.Back != "" && series.Runs == 0 && len(series.Names) == 0 {
		wanted = MaxSeries
	}
	if wanted > MaxSeries {
		return nil, regie.Errorf(regie.CodeBadRequest, "at most %d runs are undone together", MaxSeries)
	}
	in.Back = series.Back
	// from eight digits on it is a part of an id
	if number, err := strconv.ParseInt(series.Back, 10, 32); err == nil && len(series.Back) < 8 {
		if in.SessionID.IsZero() {
			return nil, regie.Errorf(regie.CodeBadRequest, "the number of a message counts in a session: name that too")
		}
		view, err := control.Session(ctx, in.SessionID)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(view.Thread, func(m store.MessageView) bool { return m.Seq == number })
		if at < 0 {
			return nil, regie.Errorf(regie.CodeNotFound, "the session has no message %d", number)
		}
		in.Back = view.Thread[at].Message.ID.String()
	}
	var out []regie.UndoPlan
	for n := range wanted {
		next := in
		if len(series.Names) > 0 {
			if err := UndoNamed(&next, series.Names[n]); err != nil {
				return nil, err
			}
		}
		plan, err := control.PlanUndo(ctx, next)
		if regie.CodeOf(err) == regie.CodeNotFound && len(out) > 0 && len(series.Names) == 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		out = append(out, plan)
		if len(plan.Conflicts(in.Force)) > 0 {
			break
		}
		in.Over = append(in.Over, UndoTarget(&plan))
	}
	return out, nil
}

// UndoTarget is what a plan undoes: a run, or an undo.
func UndoTarget(plan *regie.UndoPlan) regie.ID {
	if !plan.Undoes.IsZero() {
		return plan.Undoes
	}
	return plan.RoundID
}

// Agreed is the request for a plan that a person agreed to.
func Agreed(in dispatch.UndoRequest, plan *regie.UndoPlan) dispatch.UndoRequest {
	in.UndoID, in.Target, in.Short, in.Back, in.Over, in.Plan = regie.NewID(), UndoTarget(plan), "", "", nil, plan.Plan
	return in
}

// Redo writes how several undos are taken back together: the last one first.
func (p *Page) Redo(done []regie.Undo) {
	if len(done) < 2 {
		return
	}
	var names []string
	for i := range slices.Backward(done) {
		names = append(names, Short(done[i].ID))
	}
	if p.Inside { // it is typed there too
		p.line(p.Text.T("to take all of it back: /undo %s", strings.Join(names, " ")))
		return
	}
	p.line(p.Text.T("to take all of it back: regie undo %s", strings.Join(names, " ")))
}

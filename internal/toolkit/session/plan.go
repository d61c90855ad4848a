package session

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/tool"
)

const (
	maxSteps = 50
	maxStep  = 300 // characters
)

// StepStatus says how far a step of a plan is.
type StepStatus string

// The statuses of a step.
const (
	StepPending StepStatus = "pending"
	StepActive  StepStatus = "active"
	StepDone    StepStatus = "done"
)

// Step is one line of a plan.
type Step struct {
	Text   string     `json:"text" jsonschema:"the step, one short line"`
	Status StepStatus `json:"status"`
}

// Plan is what a model means to do, as the surfaces show it (spec 3.3): the whole of it each time.
// No steps means no plan.
type Plan struct {
	Steps []Step `json:"steps" jsonschema:"all steps in order, those that are done too; an empty list takes the plan away"`
}

func planTool() (tool.Tool, error) {
	return tool.New(
		definition(UpdatePlan,
			"Show the person your plan for a task of several steps, and how far you are. Each call replaces the plan. At most one step is active.", regie.RolePlan),
		tool.Handler[Plan]{
			Run: func(_ context.Context, _ *tool.Invocation, plan Plan) (tool.Result, error) {
				if _, err := checkPlan(plan); err != nil {
					return tool.Result{}, tool.NotDone{Err: err}
				}
				return tool.Result{Content: "ok"}, nil
			},
			Schema: func(s *jsonschema.Schema) {
				steps, most := s.Properties["steps"], maxSteps
				steps.Type, steps.Types, steps.MaxItems = "array", nil, &most
				lengths(steps.Items.Properties["text"], maxStep)
				steps.Items.Properties["status"].Enum = []any{string(StepPending), string(StepActive), string(StepDone)}
			},
		})
}

// ParsePlan reads a plan out of the arguments of update_plan. White space around the texts is taken
// away. It returns CodeBadArguments, with advice for the model, for more than 50 steps, for one
// that is empty, has more than 300 characters or holds what cannot be shown, for a status that is
// none, and for more than one active step. It is pure.
func ParsePlan(arguments json.RawMessage) (Plan, error) {
	var plan struct {
		Steps *[]Step `json:"steps"`
	}
	if err := strict(arguments, &plan); err != nil {
		return Plan{}, err
	}
	if plan.Steps == nil {
		return Plan{}, bad("steps", "", regie.Errorf(regie.CodeBadArguments, "the plan has no list of steps"))
	}
	return checkPlan(Plan{Steps: *plan.Steps})
}

func checkPlan(plan Plan) (Plan, error) {
	if n := len(plan.Steps); n > maxSteps {
		return Plan{}, bad("steps", "", regie.Errorf(regie.CodeBadArguments,
			"the plan has %d steps, at most %d are allowed", n, maxSteps))
	}
	out, active := Plan{Steps: make([]Step, len(plan.Steps))}, 0
	for i, step := range plan.Steps {
		step.Text = strings.TrimSpace(step.Text)
		if err := checkText("steps", step.Text, maxStep, false); err != nil {
			return Plan{}, err
		}
		switch step.Status {
		case StepPending, StepDone:
		case StepActive:
			active++
		default:
			return Plan{}, bad("steps", "", regie.Errorf(regie.CodeBadArguments,
				"%q is not the status of a step: use pending, active or done", plain.Clip(string(step.Status), 60)))
		}
		out.Steps[i] = step
	}
	if active > 1 {
		return Plan{}, bad("steps", "set the others to pending or done",
			regie.Errorf(regie.CodeBadArguments, "%d steps are active, at most one can be", active))
	}
	return out, nil
}

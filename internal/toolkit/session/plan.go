package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
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
	// Approve has the person approve the plan before it is carried out (decision 68).
	Approve bool `json:"approve,omitempty" jsonschema:"ask the person to approve the plan before you carry it out, and wait for the answer, which is the result; needed in plan mode"`
}

// planner is the tool with what the loop asks it for: a plan to approve is a question.
type planner struct{ tool.Tool }

// Asks reports whether a call waits for the person's approval of the plan.
func (planner) Asks(arguments json.RawMessage) bool {
	var plan Plan
	return json.Unmarshal(arguments, &plan) == nil && plan.Approve
}

// Module returns the question whether the plan is to be carried out: a Validation, its text the
// numbered steps. A no may give its reason.
func (planner) Module(arguments json.RawMessage) (regie.Module, error) {
	var plan Plan
	err := strict(arguments, &plan)
	if err == nil {
		err = checkPlan(plan)
	}
	if err == nil && len(plan.Steps) == 0 {
		err = bad("steps", "give the steps of the plan",
			regie.Errorf(regie.CodeBadArguments, "there is no plan to approve"))
	}
	var text strings.Builder
	for i, step := range plan.Steps {
		fmt.Fprintf(&text, "%d. %s\n", i+1, strings.TrimSpace(step.Text))
	}
	return regie.Module{Kind: regie.ModuleValidation, Text: text.String(), AllowFreeText: true}, err
}

func planTool() (tool.Tool, error) {
	made, err := tool.New(
		definition(UpdatePlan,
			"Show the person your plan for a task of several steps, and how far you are. Each call replaces the plan. At most one step is active.", regie.RolePlan),
		tool.Handler[Plan]{
			Run: func(_ context.Context, _ *tool.Invocation, plan Plan) (tool.Result, error) {
				if err := checkPlan(plan); err != nil {
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
	return planner{made}, err
}

// checkPlan refuses what the schema cannot: a text that is blank or cannot be shown, and more than
// one active step.
func checkPlan(plan Plan) error {
	active := 0
	for _, step := range plan.Steps {
		if err := checkText("steps", strings.TrimSpace(step.Text), maxStep, false); err != nil {
			return err
		}
		if step.Status == StepActive {
			active++
		}
	}
	if active > 1 {
		return bad("steps", "set the others to pending or done",
			regie.Errorf(regie.CodeBadArguments, "%d steps are active, at most one can be", active))
	}
	return nil
}

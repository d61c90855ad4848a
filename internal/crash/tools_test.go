//go:build faults

package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/invariant"
	"github.com/regie-run/regie/internal/tool"
)

// effectArgs name an effect: each is proposed once in a scenario, so two effects of one name are a
// repeat.
type effectArgs struct {
	Name string `json:"name"`
}

// tools are those of the child: one for each effect class, whose effects happen in the ledger's
// process, and one that asks the person.
func tools(ledger string) ([]tool.Tool, error) {
	question, err := newQuestion()
	if err != nil {
		return nil, err
	}
	out := []tool.Tool{question}
	for _, class := range []regie.EffectClass{regie.ClassOnce, regie.ClassKeyed, regie.ClassVerifiable, regie.ClassRead} {
		definition := regie.ToolDefinition{Name: "ledger." + string(class), Description: "an effect in the ledger", Kind: regie.KindAction, Class: class, Risk: regie.RiskInternal}
		handler := tool.Handler[effectArgs]{
			Run: func(ctx context.Context, inv *tool.Invocation, args effectArgs) (tool.Result, error) {
				return post(ctx, ledger, class, inv, args)
			},
			Preview: func(_ context.Context, _ *tool.Invocation, args effectArgs) (regie.Preview, error) {
				return regie.Preview{
					Sentence: regie.Say("do %s", args.Name),
					Scopes:   []regie.Scope{{Kind: regie.ScopeUnder, Field: "name", Value: path.Dir(args.Name), Sentence: regie.Say("all of %s", path.Dir(args.Name))}},
				}, nil
			},
		}
		switch class {
		case regie.ClassRead:
			definition.Kind, definition.ParallelSafe, definition.Local, handler.Preview = regie.KindQuery, true, true, nil
		case regie.ClassVerifiable:
			handler.Probe = func(ctx context.Context, _ *tool.Invocation, args effectArgs) (tool.Evidence, tool.Result, error) {
				return probe(ctx, ledger, args)
			}
		}
		t, err := tool.New(definition, handler)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func post(ctx context.Context, ledger string, class regie.EffectClass, inv *tool.Invocation, args effectArgs) (tool.Result, error) {
	body, err := json.Marshal(invariant.Effect{Key: inv.CallID, Class: class, Name: args.Name, Holder: os.Getpid()})
	if err != nil {
		return tool.Result{}, err
	}
	if class == regie.ClassVerifiable { // what is cut on its way may still arrive after its probe
		ctx = context.WithoutCancel(ctx)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, ledger+"/effect", bytes.NewReader(body))
	if err != nil {
		return tool.Result{}, err
	}
	if delay, _ := time.ParseDuration(os.Getenv("REGIE_CRASH_DELAY")); delay > 0 { // it is a long way to the ledger
		select {
		case <-time.After(rand.N(delay)):
		case <-ctx.Done():
			return tool.Result{}, context.Cause(ctx)
		}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Content: "done " + args.Name}, response.Body.Close()
}

func probe(ctx context.Context, ledger string, args effectArgs) (tool.Evidence, tool.Result, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, ledger+"/probe?name="+url.QueryEscape(args.Name), nil)
	if err != nil {
		return tool.Unsure, tool.Result{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return tool.Unsure, tool.Result{}, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return tool.Happened, tool.Result{Content: "done " + args.Name}, nil
	}
	return tool.NotHappened, tool.Result{}, nil
}

// questionArgs are what the model asks a person.
type questionArgs struct {
	Question      string   `json:"question"`
	Options       []string `json:"options"`
	AllowFreeText bool     `json:"allow_free_text"`
}

// question is the tool with which the model asks.
type question struct{ tool.Tool }

func newQuestion() (tool.Tool, error) {
	t, err := tool.New(
		regie.ToolDefinition{Name: "ask.user", Description: "asks the person", Kind: regie.KindQuery, Role: regie.RoleQuestion, Risk: regie.RiskInternal},
		tool.Handler[questionArgs]{Run: func(context.Context, *tool.Invocation, questionArgs) (tool.Result, error) {
			return tool.Result{}, regie.Errorf(regie.CodeInternal, "a question is not run")
		}})
	return question{t}, err
}

// Module implements tool.Asker.
func (question) Module(arguments json.RawMessage) (regie.Module, error) {
	var args questionArgs
	err := json.Unmarshal(arguments, &args)
	return regie.Module{Kind: regie.ModuleChoice, Text: args.Question, Options: args.Options, AllowFreeText: args.AllowFreeText}, err
}

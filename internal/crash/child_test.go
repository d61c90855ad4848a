//go:build faults

package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/tool"
)

// TestMain makes this binary the child where the harness asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("REGIE_CRASH_CHILD") != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a process that submits one request, or takes up what was interrupted, and stays until every round has ended. It tells
// what was acknowledged on its standard output.
func child() error {
	ctx := context.Background()
	settings, err := config.Load(os.Getenv, config.Flags{})
	if err != nil {
		return err
	}
	tools, err := ledgerTools(os.Getenv("REGIE_CRASH_LEDGER"))
	if err != nil {
		return err
	}
	conn, err := app.Connect(ctx, app.Options{Config: settings, Tools: tools})
	if err != nil {
		return err
	}
	session, err := regie.ParseID(os.Getenv("REGIE_CRASH_SESSION"))
	if err != nil {
		return err
	}
	run, err := conn.Submit(ctx, dispatch.RunRequest{
		ClientID: "only", SessionID: session, Root: os.Getenv("REGIE_CRASH_ROOT"), FoundBy: "directory", Text: os.Getenv("REGIE_CRASH_TEXT"),
		Agent: "main", Provider: settings.Provider, Model: settings.Model, Policy: approval.Policy{Allow: []string{"*.*"}},
	})
	if err != nil {
		return err
	}
	fmt.Printf("ack %s %d\n", run.RoundID, run.Seq)
	ended := errors.New("ended")
	err = conn.Events(ctx, session, 0, func(item dispatch.Item) error {
		if item.Event == nil {
			return nil
		}
		fmt.Printf("ack %s %d\n", run.RoundID, item.Event.Seq)
		var body struct {
			State regie.RoundState `json:"state"`
		}
		if item.Event.Type == regie.EventRound && json.Unmarshal(item.Event.Body, &body) == nil && body.State == regie.RoundEnded {
			return ended
		}
		return nil
	})
	if !errors.Is(err, ended) {
		return err
	}
	return conn.Close()
}

// effectArgs name an effect: each is proposed once in a scenario, so two effects of one name are a repeat.
type effectArgs struct {
	Name string `json:"name"`
}

// ledgerTools are tools whose effects happen in the ledger's process, one for each effect class.
func ledgerTools(ledger string) ([]tool.Tool, error) {
	post := func(ctx context.Context, class regie.EffectClass, inv *tool.Invocation, args effectArgs) (tool.Result, error) {
		body, err := json.Marshal(effect{Key: inv.CallID, Class: class, Name: args.Name})
		if err != nil {
			return tool.Result{}, err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, ledger+"/effect", bytes.NewReader(body))
		if err != nil {
			return tool.Result{}, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return tool.Result{}, err
		}
		return tool.Result{Content: "done " + args.Name}, response.Body.Close()
	}
	var out []tool.Tool
	for _, class := range []regie.EffectClass{regie.ClassOnce, regie.ClassKeyed, regie.ClassVerifiable, regie.ClassRead} {
		definition := regie.ToolDefinition{Name: "ledger." + string(class), Description: "an effect in the ledger", Kind: regie.KindAction, Class: class, Risk: regie.RiskInternal}
		handler := tool.Handler[effectArgs]{Run: func(ctx context.Context, inv *tool.Invocation, args effectArgs) (tool.Result, error) {
			return post(ctx, class, inv, args)
		}}
		switch class {
		case regie.ClassRead:
			definition.Kind, definition.ParallelSafe = regie.KindQuery, true
		case regie.ClassVerifiable:
			handler.Probe = func(ctx context.Context, _ *tool.Invocation, args effectArgs) (tool.Evidence, tool.Result, error) {
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
		}
		t, err := tool.New(definition, handler)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// aRun is a run in which everything happened that runs show can show.
func aRun() runView {
	at := time.Date(2026, 11, 21, 9, 30, 0, 123e6, time.UTC)
	id := func(s string) regie.ID {
		parsed, err := regie.ParseID("0197e0a1-2b3c-7d4e-8f50-6172839400" + s)
		if err != nil {
			panic(err)
		}
		return parsed
	}
	reply := func(s string) *regie.Message {
		return &regie.Message{AI: &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: s}}}}
	}
	return runView{Audit: &store.VerifyReport{Events: 14}, RoundView: store.RoundView{
		Workspace: regie.Workspace{Root: "/home/ada/house"}, Session: regie.Session{ID: id("01")},
		Round: regie.Round{
			ID: id("02"), State: regie.RoundEnded, End: regie.EndAnswered, StartedAt: at, EndedAt: at.Add(3217 * time.Millisecond), Agent: "main",
			Provider: "openai", Model: "m-large", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736",
		},
		Trigger: &regie.Message{Text: "Book the invoices of\nNovember \x1b[2Jplease"},
		Exchanges: []store.ExchangeView{
			{
				Exchange: regie.Exchange{
					Number: 1, Reason: regie.ExchangeStart, State: regie.ExchangeReplied, Usage: regie.Usage{Input: 1200, Output: 80, CacheRead: 1000, CacheCreation: 200},
					Money: regie.Money{Cost: 4200, Known: true}, ModelUS: 812_300, FirstByteUS: 210_400,
				},
				Attempts: []regie.Attempt{{Number: 1, Code: regie.CodeTruncatedStream, Error: "the model's stream ended before the reply was whole", Partial: "I read the\nfol", ModelUS: 90_100, Money: regie.Money{Known: true}}},
				Reply:    reply("I read the folder and write the first entry."),
				Calls: []regie.Call{
					{Ordinal: 0, Tool: "files.list_files", Arguments: `{"path":"invoices"}`, State: regie.CallSucceeded, Result: "invoices/a.pdf\t900 bytes", DurationUS: 640},
					{Ordinal: 1, Tool: "files.write_file", Arguments: `{"path":"book.csv","content":"…"}`, Executed: json.RawMessage(`{"path":"book-2.csv","content":"…"}`), State: regie.CallSucceeded, Recovered: true, Result: "created book-2.csv", DurationUS: 2210},
					{ID: id("04"), Ordinal: 2, Tool: "bank.pay", Arguments: `{"amount":12}`, State: regie.CallUnknown, Error: &regie.CallError{Code: regie.CodeOutcomeUnknown, Message: "outcome unknown: the process ended while it ran"}, DurationUS: 0},
					{Ordinal: 4, Tool: "bank.pay", Arguments: `{"amount":13}`, State: regie.CallSucceeded, Error: &regie.CallError{Code: regie.CodeOutcomeUnknown, Message: "outcome unknown"}, Resolution: &regie.Resolution{As: regie.ResolvedHappened, By: "ada", Note: "on the statement"}},
					{Ordinal: 3, Tool: "files.write_file", Arguments: `{"path":".git/x"}`, State: regie.CallNotRun, NotRun: regie.NotRunInterrupted, Error: &regie.CallError{Code: regie.CodeOutcomeUnknown, Message: "not run"}},
				},
			},
			{
				Exchange: regie.Exchange{
					Number: 2, Reason: regie.ExchangeData, State: regie.ExchangeReplied, Usage: regie.Usage{Input: 1500, Output: 30, Reasoning: 12, Estimated: true}, ModelUS: 402_000, FirstByteUS: 100_000,
				},
				Reply: reply("One entry is booked; one payment needs your eye."),
			},
		},
		Spent: regie.Spending{Cost: 4200},
	}}
}

func TestShowRun(t *testing.T) {
	for _, lang := range []string{"en", "fr"} {
		t.Run(lang, func(t *testing.T) {
			t.Setenv("TZ", "UTC")
			var out bytes.Buffer
			showRun(&printer{w: &out, text: i18n.New(lang)}, aRun())
			if strings.ContainsRune(out.String(), 0x1b) {
				t.Error("a control sequence got through")
			}
			golden(t, filepath.Join("testdata", "show."+lang+".golden"), out.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

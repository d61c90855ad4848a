package anthropic_test

import (
	"context"
	"testing"

	anthropicsdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/anthropic"
	"github.com/regie-run/regie/internal/sdkcheck"
)

func read(ctx context.Context, url string) (out sdkcheck.Answer, err error) {
	client := anthropicsdk.NewClient(option.WithBaseURL(url), option.WithAPIKey(sdkcheck.Key), option.WithMaxRetries(0))
	stream := client.Messages.NewStreaming(ctx, anthropicsdk.MessageNewParams{
		Model: "m", MaxTokens: 10, Messages: []anthropicsdk.MessageParam{anthropicsdk.NewUserMessage(anthropicsdk.NewTextBlock("go"))},
	})
	var message anthropicsdk.Message
	for stream.Next() {
		if err := message.Accumulate(stream.Current()); err != nil {
			return out, err
		}
	}
	for _, block := range message.Content {
		switch block.Type {
		case "text":
			out.Text += block.Text
		case "thinking":
			out.Thinking += block.Thinking
		case "tool_use":
			out.Call(block.Name, string(block.Input))
		}
	}
	u := message.Usage
	out.Stop, out.Output, out.CacheRead = string(message.StopReason), u.OutputTokens, u.CacheReadInputTokens
	out.Input = u.InputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens
	return out, stream.Err()
}

const testdata = "../../provider/anthropic/testdata/"

var format = sdkcheck.Format{
	Name: "anthropic", Streams: testdata + "*.sse", Theirs: read,
	Ours: func(url string) (provider.Provider, error) {
		return anthropic.New(anthropic.Config{BaseURL: url, APIKey: sdkcheck.Key})
	},
}

func TestStreams(t *testing.T) { format.Check(t) }

func TestTraits(t *testing.T) {
	format.CheckTraits(t, sdkcheck.Traits{Comment: false, InBand: true, LongKiB: 33 << 10, Long: true}, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}")
}

func BenchmarkStreams(b *testing.B) { format.Measure(b) }

func TestRequests(t *testing.T) {
	sdkcheck.Requests(t, testdata+"requests/*.json", func() any { return &anthropicsdk.MessageNewParams{} })
}

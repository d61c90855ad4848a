package openai_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	openaisdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	responsessdk "github.com/openai/openai-go/v3/responses"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/responses"
	"github.com/regie-run/regie/internal/sdkcheck"
)

// readChat keeps calls apart by their ids: the SDK's accumulator would make one of those that share
// a number (spec 12.6, trap 2).
func readChat(ctx context.Context, url string) (out sdkcheck.Answer, err error) {
	client := openaisdk.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(sdkcheck.Key), option.WithMaxRetries(0))
	stream := client.Chat.Completions.NewStreaming(ctx, openaisdk.ChatCompletionNewParams{Model: "m", Messages: []openaisdk.ChatCompletionMessageParamUnion{openaisdk.UserMessage("go")}})
	type call struct{ id, name, arguments string }
	var calls []*call
	for stream.Next() {
		chunk := stream.Current()
		if chunk.JSON.Usage.Valid() {
			out.Input, out.Output, out.CacheRead = chunk.Usage.PromptTokens, chunk.Usage.CompletionTokens, chunk.Usage.PromptTokensDetails.CachedTokens
		}
		for _, choice := range chunk.Choices {
			out.Text += choice.Delta.Content
			out.Thinking += vendorField(choice.Delta.JSON.ExtraFields["reasoning"].Raw())
			if choice.FinishReason != "" {
				out.Stop = choice.FinishReason
			}
			for _, piece := range choice.Delta.ToolCalls {
				if last := len(calls) - 1; last < 0 || piece.ID != "" && piece.ID != calls[last].id {
					calls = append(calls, &call{id: piece.ID})
				}
				last := calls[len(calls)-1]
				last.name += piece.Function.Name
				last.arguments += piece.Function.Arguments
			}
		}
	}
	for _, c := range calls {
		out.Call(c.name, c.arguments)
	}
	return out, stream.Err()
}

// vendorField is a string that a server says beside what the vendor documents.
func vendorField(raw string) (text string) {
	_ = json.Unmarshal([]byte(raw), &text) // none is none
	return text
}

func readResponses(ctx context.Context, url string) (out sdkcheck.Answer, err error) {
	client := openaisdk.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(sdkcheck.Key), option.WithMaxRetries(0))
	stream := client.Responses.NewStreaming(ctx, responsessdk.ResponseNewParams{Model: "m", Input: responsessdk.ResponseNewParamsInputUnion{OfString: openaisdk.String("go")}})
	for stream.Next() {
		event := stream.Current()
		switch event.Type {
		case "response.output_text.delta":
			out.Text += event.Delta
		case "response.output_item.done":
			item := event.Item
			var parts []string
			for _, summary := range item.Summary {
				parts = append(parts, summary.Text)
			}
			out.Thinking += strings.Join(parts, "\n\n")
			if item.Type == "function_call" {
				out.Call(item.Name, item.Arguments.OfString)
			}
		}
		if event.Type != "response.completed" {
			continue
		}
		u := event.Response.Usage
		out.Stop, out.Input, out.Output, out.CacheRead = string(event.Response.Status), u.InputTokens, u.OutputTokens, u.InputTokensDetails.CachedTokens
	}
	return out, stream.Err()
}

var chatFormat = sdkcheck.Format{
	Name: "openai", Streams: "../../provider/openai/testdata/*.sse", Theirs: readChat,
	Ours: func(url string) (provider.Provider, error) {
		return openai.New(openai.Config{BaseURL: url + "/v1", APIKey: sdkcheck.Key})
	},
}

func TestChatStreams(t *testing.T) { chatFormat.Check(t) }

func TestChatTraits(t *testing.T) {
	chatFormat.CheckTraits(t, sdkcheck.Traits{Comment: false, InBand: true, LongKiB: 33 << 10, Long: true}, "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\",\"code\":null}}")
}

func BenchmarkChatStreams(b *testing.B) { chatFormat.Measure(b) }

var responsesFormat = sdkcheck.Format{
	Name: "responses", Streams: "../../provider/responses/testdata/*.sse", Theirs: readResponses,
	Ours: func(url string) (provider.Provider, error) {
		return responses.New(responses.Config{BaseURL: url + "/v1", APIKey: sdkcheck.Key})
	},
}

func TestResponsesStreams(t *testing.T) { responsesFormat.Check(t) }

func TestResponsesTraits(t *testing.T) {
	responsesFormat.CheckTraits(t, sdkcheck.Traits{Comment: false, InBand: false, LongKiB: 33 << 10, Long: true}, "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"overloaded\",\"sequence_number\":9}")
}

func BenchmarkResponsesStreams(b *testing.B) { responsesFormat.Measure(b) }

func TestRequests(t *testing.T) {
	for _, vendor := range []string{"openai", "unnamed"} {
		sdkcheck.Requests(t, "../../provider/openai/testdata/requests/"+vendor+".json", func() any { return &openaisdk.ChatCompletionNewParams{} })
	}
	sdkcheck.Requests(t, "../../provider/responses/testdata/request_*.json", func() any { return &responsessdk.ResponseNewParams{} })
}

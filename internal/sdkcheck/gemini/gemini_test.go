package gemini_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/gemini"
	"github.com/regie-run/regie/internal/sdkcheck"
)

func read(ctx context.Context, url string) (out sdkcheck.Answer, err error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: sdkcheck.Key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	if err != nil {
		return out, err
	}
	for chunk, err := range client.Models.GenerateContentStream(ctx, "m", genai.Text("go"), nil) {
		if err != nil {
			return out, err
		}
		if u := chunk.UsageMetadata; u != nil {
			out.Input, out.CacheRead = int64(u.PromptTokenCount), int64(u.CachedContentTokenCount)
			out.Output = int64(u.CandidatesTokenCount + u.ThoughtsTokenCount)
		}
		for _, candidate := range chunk.Candidates {
			if candidate.FinishReason != "" {
				out.Stop = string(candidate.FinishReason)
			}
			if candidate.Content == nil {
				continue
			}
			for _, part := range candidate.Content.Parts {
				switch {
				case part.FunctionCall != nil:
					arguments, err := json.Marshal(part.FunctionCall.Args)
					if err != nil {
						return out, err
					}
					if part.FunctionCall.Args == nil {
						arguments = nil
					}
					out.Call(part.FunctionCall.Name, string(arguments))
				case part.Thought:
					out.Thinking += part.Text
				default:
					out.Text += part.Text
				}
			}
		}
	}
	return out, nil
}

// request is the body of generateContent in the SDK's own types; the SDK has none for the whole.
type request struct {
	Contents          []*genai.Content        `json:"contents,omitempty"`
	SystemInstruction *genai.Content          `json:"systemInstruction,omitempty"`
	Tools             []*genai.Tool           `json:"tools,omitempty"`
	ToolConfig        *genai.ToolConfig       `json:"toolConfig,omitempty"`
	GenerationConfig  *genai.GenerationConfig `json:"generationConfig,omitempty"`
}

const testdata = "../../provider/gemini/testdata/"

var format = sdkcheck.Format{
	Name: "gemini", Streams: testdata + "*.sse", Theirs: read,
	Ours: func(url string) (provider.Provider, error) {
		return gemini.New(gemini.Config{BaseURL: url + "/v1beta", APIKey: sdkcheck.Key})
	},
}

func TestStreams(t *testing.T) { format.Check(t) }

func TestTraits(t *testing.T) {
	format.CheckTraits(t, sdkcheck.Traits{Comment: true, InBand: true, LongKiB: 9 << 10, Long: false}, "data: {\"error\":{\"code\":503,\"message\":\"overloaded\",\"status\":\"UNAVAILABLE\"}}")
}

func BenchmarkStreams(b *testing.B) { format.Measure(b) }

// UnmarshalJSON writes the signature that stands for none, which Google documents as it is, in the
// alphabet that Go's base64 reads: the API takes both.
func (r *request) UnmarshalJSON(data []byte) error {
	type plain request
	strict := json.NewDecoder(strings.NewReader(strings.ReplaceAll(string(data), "skip_thought_signature_validator", standard)))
	strict.DisallowUnknownFields()
	return strict.Decode((*plain)(r))
}

// MarshalJSON writes it back.
func (r *request) MarshalJSON() ([]byte, error) {
	type plain request
	data, err := json.Marshal((*plain)(r))
	return []byte(strings.ReplaceAll(string(data), standard, "skip_thought_signature_validator")), err
}

const standard = "skip/thought/signature/validator"

func TestRequests(t *testing.T) {
	sdkcheck.Requests(t, testdata+"requests/*.json", func() any { return &request{} })
}

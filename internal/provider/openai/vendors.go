package openai

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// order is which message may follow which.
type order int

const (
	// free takes any order that keeps results behind their calls.
	free order = iota
	// strict wants user and assistant to take turns, and an assistant's word between a result and a
	// user's message. Messages of one side are merged, and what is missing between two is filled
	// in.
	strict
)

// replay is what of a model's own thinking goes back to it.
type replay int

const (
	replayNothing replay = iota
	// replayLoop sends it back as reasoning_content from the first call after a person's message
	// on, and nowhere else.
	replayLoop
	// replayDetails sends the list reasoning_details back as it came, to the model that it came
	// from.
	replayDetails
)

// parallel is when parallel_tool_calls is said.
type parallel int

const (
	parallelSaid parallel = iota
	parallelIfNot
	parallelNever
)

// quirks are how a vendor's Chat Completions differ from what a server of this kind takes and says
// by the book. What a person configures of a vendor (address, key, models by size, tiers) stands in
// package config and not here; which vendor it is, config says too.
type quirks struct {
	// vendor is the name under which its thinking is stored: it goes back to the same vendor only
	// (decision 7).
	vendor string
	// example is how its address looks, for messages; empty for that of most.
	example string
	// completionTokens sends max_completion_tokens in place of max_tokens.
	completionTokens bool
	// noUsageOption leaves stream_options out.
	noUsageOption bool
	parallel      parallel
	// minOutput is the least bound of a reply where tools are declared, in tokens.
	minOutput int
	// untempered says of a model that it refuses a temperature; nil says it of none.
	untempered func(model string) bool
	// free says that it is software that people run themselves, so that its models cost nothing
	// (decision 29).
	free bool
	// noTools says that its models make no calls: they are asked in the JSON dialect (spec 6.3).
	noTools bool
	// noDone accepts a stream that ends in good order after its finish reason without [DONE].
	noDone bool
	// oneSystem joins the levels into one system message.
	oneSystem bool
	// shortIDs makes the ids of calls nine letters and digits.
	shortIDs bool
	order    order
	replay   replay
	// guests says that models of Mistral may stand behind it, whose templates have Mistral's rules.
	guests bool
	// effort writes how hard the model is to think, as members of a request without a comma; effort
	// is empty where nobody said it.
	effort func(model, effort string, tools bool) string
	// sizes asks the server for the windows of its models; nil where no server of the vendor says
	// them, or where they are far beyond any budget.
	sizes sizes
	// models are those that it is known to have where it lists none.
	models []string
	// judge knows what its errors mean beyond the status; nil knows nothing more.
	judge func(e *provider.Error, kind, said string)
}

// vendors is every vendor of spec 6.3 that speaks Chat Completions, with what was found in its
// public documentation, or in what its server answered to others. The empty name is a server that
// nobody has named.
var vendors = map[string]quirks{
	"": {vendor: Name, order: free, replay: replayNothing, parallel: parallelSaid, effort: effortIn("", plainEffort, "", "")},

	// platform.openai.com/docs/api-reference/chat: max_tokens is refused by all models that think.
	// parallel_tool_calls is true by default, and refused by some of those, so only a no is said.
	// Since gpt-5.4 the API refuses an effort beside function tools, and since gpt-5.6 also the
	// default one: tools are had with "none" there, or with the Responses API. A model that reasons
	// refuses a temperature.
	"openai": {
		vendor: Name, completionTokens: true, untempered: wire.Reasons, parallel: parallelIfNot,
		effort: openAIEffort,
	},

	// console.groq.com/docs/reasoning: Qwen's thinking stands in <think> in the text unless
	// reasoning_format asks for it apart (beside tools that is the default, and raw is refused);
	// gpt-oss has it apart always and takes no format. The efforts of the two differ. Below 4,000
	// tokens of output calls are cut off (spec 6.3). /docs/errors: 400 tool_use_failed is a call
	// that the model wrote wrong, 498 a flex tier that is full.
	"groq": {vendor: "groq", minOutput: 4000, effort: groqEffort, judge: judgeGroq},

	// api-docs.deepseek.com/guides/thinking_mode: where a model called tools between two messages
	// of a person, what it thought from there on must go back in all requests, else 400; elsewhere
	// it is ignored, and so kept out (spec 6.3). Effort and thinking are two members, and
	// parallel_tool_calls is none of the API. /quick_start/rate_limit: keep-alives are comments.
	// 402 is an empty balance, and a finish reason of its own, insufficient_system_resource, is no
	// end of a reply.
	"deepseek": {vendor: "deepseek", parallel: parallelNever, replay: replayLoop, effort: effortIn(
		`"thinking":{"type":"disabled"}`, `"thinking":{"type":"enabled"},`+plainEffort, "", "")},

	// docs.mistral.ai/api: an unknown member is refused with 422, and so are stream_options (usage
	// comes by itself) and max_completion_tokens. An id is nine of a-z, A-Z, 0-9 (error 3280), and
	// a user's message does not follow a result (error 3230). /capabilities/reasoning: content is a
	// list of text and thinking chunks where the model thinks; a thread without the thinking is as
	// good, and models that do not think refuse it, so it stays out.
	"mistral": {vendor: "mistral", noUsageOption: true, shortIDs: true, order: strict, effort: mistralEffort},

	// openrouter.ai/docs: comments keep the stream alive while a provider is found;
	// reasoning_details go back unmodified, so that signatures and encrypted thinking stay valid;
	// an error after the first token is a chunk with error and the finish reason error; the
	// provider's own words stand in error.metadata. 403 is moderation or a guardrail and not the
	// key.
	"openrouter": {
		vendor: "openrouter", replay: replayDetails, guests: true,
		effort: effortIn("", `"reasoning":{"effort":"%s"}`, "none", "xhigh"), judge: judgeOpenRouter,
	},

	// docs.vllm.ai: the window is max_model_len in the list of models; thinking is reasoning,
	// reasoning_content before 0.11; templates take enable_thinking. Templates of many models take
	// one system message only. Without --enable-auto-tool-choice calls are refused with 400.
	"vllm": {
		vendor: "vllm", free: true, oneSystem: true, guests: true,
		effort: effortIn(unthinking, plainEffort, "low", "high"),
		sizes:  listed, judge: judgeLocal,
	},

	// lmstudio.ai/docs: the compatible list of models names no window; /api/v0/models has
	// max_context_length and, of a model in memory, loaded_context_length, and says which are
	// embeddings. An error in the stream is an event of that name. Thinking is reasoning_content,
	// reasoning with gpt-oss. It has no parallel_tool_calls.
	"lmstudio": {
		vendor: "lmstudio", free: true, oneSystem: true, guests: true, parallel: parallelNever,
		effort: effortIn("", plainEffort, "", ""), sizes: lmStudioSizes, judge: judgeLocal,
	},

	// llama.cpp tools/server/README.md: what a slot holds is default_generation_settings.n_ctx of
	// /props, of the list only what the model was trained with; parallel_tool_calls is off unless
	// said; what a template takes goes in chat_template_kwargs; calls need --jinja, and a prompt
	// that is too large is exceed_context_size_error.
	"llamacpp": {
		vendor: "llamacpp", free: true, oneSystem: true, guests: true, effort: effortIn(unthinking,
			`"chat_template_kwargs":{"enable_thinking":true,"reasoning_effort":"%s"}`, "low", "high"),
		sizes: llamaSizes, judge: judgeLocal,
	},

	// docs.perplexity.ai: no function tools and no role tool; after the system messages user and
	// assistant take turns, else 400 invalid_message. Each chunk repeats usage, citations and
	// search_results; some models end without [DONE]. There is no list of models.
	"perplexity": {
		vendor: "perplexity", example: "https://api.perplexity.ai", noUsageOption: true, parallel: parallelNever,
		noTools: true, noDone: true, order: strict,
		effort: effortIn("", plainEffort, "minimal", "high"),
		models: []string{"sonar", "sonar-pro", "sonar-reasoning-pro", "sonar-deep-research"},
	},
}

// Vendors are the names of the vendors whose quirks are known, sorted.
func Vendors() []string {
	names := slices.Collect(maps.Keys(vendors))
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

func quirksOf(vendor string) quirks {
	if q, ok := vendors[vendor]; ok {
		return q
	}
	return vendors[""]
}

// of are the quirks for one model: some vendors serve models of another one, whose templates refuse
// what it refuses.
func (q quirks) of(model string) quirks {
	if q.guests && mistralMade(model) {
		q.order, q.shortIDs = strict, true
	}
	return q
}

func mistralMade(model string) bool {
	model = strings.ToLower(model)
	families := []string{"mistral", "ministral", "magistral", "devstral", "codestral", "mixtral"}
	return slices.ContainsFunc(families, func(family string) bool { return strings.Contains(model, family) })
}

// noteJinja says how a server of one's own is made to take tools, or is asked without them.
const noteJinja = "or ask in JSON: --dialect json, or agents.main.dialect in regie.yaml"

// judgeAll knows the errors that several vendors have in common.
func judgeAll(e *provider.Error, kind, said string) {
	switch {
	case kind == "tool_use_failed" && (e.Status == http.StatusBadRequest || e.Status == 0):
		// the model's, not the request's (spec 12.6, trap 7)
		e.Code, e.Retryable = regie.CodeBadReply, true
	case e.Status == 0 && (kind == "401" || kind == "authentication_error" || kind == "invalid_api_key"):
		e.Code, e.Retryable = regie.CodeProviderAuth, false
	case e.Status == 0 && kind == "402":
		e.Code, e.Retryable = regie.CodeProviderQuota, false
	case e.Status == 0 && e.Code == regie.CodeProviderBusy &&
		slices.Contains([]string{"400", "403", "404", "422"}, kind):
		e.Code, e.Retryable = regie.CodeProviderRejected, false
	case e.Status == http.StatusBadRequest && strings.Contains(strings.ToLower(said), "insufficient balance"):
		e.Code, e.Retryable = regie.CodeProviderQuota, false
	}
}

func judgeGroq(e *provider.Error, kind, _ string) {
	if e.Status == 498 || kind == "capacity_exceeded" {
		e.Code, e.Retryable = regie.CodeProviderBusy, true
	}
}

func judgeOpenRouter(e *provider.Error, _, said string) {
	if e.Status == http.StatusForbidden {
		e.Code = regie.CodeProviderRejected
		_ = e.Tell(regie.Say(
			"the model's server refused the request with 403, for moderation or a rule of the account: %s", said))
	}
}

func judgeLocal(e *provider.Error, _, said string) {
	// llama.cpp, of a text to embed that its batch does not hold: 500
	if strings.Contains(said, "too large to process") {
		e.Code, e.Retryable = regie.CodeContextTooLarge, false
	}
	if strings.Contains(said, "--enable-auto-tool-choice") || strings.Contains(said, "--jinja") ||
		strings.Contains(said, "does not support tools") {
		e.Code, e.Retryable = regie.CodeProviderRejected, false
		e.Advise(noteJinja)
	}
}

// TakesTools reports whether a vendor's models make calls of their own.
func TakesTools(vendor string) bool { return !quirksOf(vendor).noTools }

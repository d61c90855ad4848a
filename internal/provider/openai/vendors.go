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
	// strict requires alternating user and assistant turns, and an assistant's text between a
	// result and a user's message. Messages of one side are merged, and fillers replace missing
	// ones.
	strict
)

// replay says how much of a model's own thinking goes back to it.
type replay int

const (
	replayNothing replay = iota
	// replayLoop sends it back as reasoning_content only from the first call after a person's
	// message on.
	replayLoop
	// replayDetails sends the list reasoning_details back as it came, to the model that it came
	// from.
	replayDetails
)

// parallel says when a request carries parallel_tool_calls.
type parallel int

const (
	parallelSaid parallel = iota
	parallelIfNot
	parallelNever
)

// quirks describe how a vendor's Chat Completions differ from the standard. Package config holds
// what a person configures of a vendor (address, key, models by size, tiers, its name).
type quirks struct {
	// vendor is the name that its thinking is stored under: it goes back to the same vendor only
	// (decision 7).
	vendor string
	// example is how its address looks, for messages; empty for that of most.
	example string
	// completionTokens sends max_completion_tokens instead of max_tokens.
	completionTokens bool
	// noUsageOption leaves stream_options out.
	noUsageOption bool
	parallel      parallel
	// minOutput is the least bound of a reply where tools are declared, in tokens.
	minOutput int
	// untempered reports whether a model refuses a temperature; nil: none does.
	untempered func(model string) bool
	// free says that it is software that people run themselves, so that its models cost nothing
	// (decision 29).
	free bool
	// noTools says that its models make no calls: they get the JSON dialect (spec 6.3).
	noTools bool
	// noDone accepts a stream that ends in good order after its finish reason without [DONE].
	noDone bool
	// oneSystem joins the levels into one system message.
	oneSystem bool
	// shortIDs makes the ids of calls nine letters and digits.
	shortIDs bool
	order    order
	replay   replay
	// guests says that the vendor may serve models of Mistral; their templates have Mistral's
	// rules.
	guests bool
	// effort writes the effort as members of a request, without a leading comma; effort is empty if
	// not configured.
	effort func(model, effort string, tools bool) string
	// sizes asks the server for its models' windows, and whether they take images; nil if no server
	// of the vendor reports them, or if the windows exceed any budget.
	sizes sizes
	// models are the known models of a vendor without a list.
	models []string
	// judge knows what its errors mean beyond the status; nil knows nothing more.
	judge func(e *provider.Error, kind, said string)
}

// vendors holds every vendor of spec 6.3 that speaks Chat Completions, with findings from its
// public documentation or from its server's answers. The empty name is a server without a
// configured vendor.
var vendors = map[string]quirks{
	"": {vendor: Name, order: free, replay: replayNothing, parallel: parallelSaid, effort: effortIn("", plainEffort, "", "")},

	// platform.openai.com/docs/api-reference/chat: all models that think refuse max_tokens.
	// parallel_tool_calls is true by default, and some models refuse it, so only false is sent.
	// Since gpt-5.4 the API refuses an effort together with function tools, since gpt-5.6 even the
	// default one: tools need "none" there, or the Responses API. A model that reasons refuses a
	// temperature.
	"openai": {
		vendor: Name, completionTokens: true, untempered: wire.Reasons, parallel: parallelIfNot,
		effort: openAIEffort,
	},

	// console.groq.com/docs/reasoning: Qwen writes its thinking as <think> in the text unless
	// reasoning_format separates it (the default with tools, which refuse raw). gpt-oss always
	// separates it and takes no format. The efforts of the two differ. Below 4,000 tokens of output
	// calls are cut off (spec 6.3). /docs/errors: 400 tool_use_failed is a malformed call of the
	// model, 498 a full flex tier.
	"groq": {vendor: "groq", minOutput: 4000, effort: groqEffort, judge: judgeGroq},

	// api-docs.deepseek.com/guides/thinking_mode: if a model called tools since a person's message,
	// its thinking since then must go back in all requests, else 400. Elsewhere the API ignores it,
	// so it is left out (spec 6.3). Effort and thinking are two members; the API has no
	// parallel_tool_calls. /quick_start/rate_limit: keep-alives are comments. 402 is an empty
	// balance. The finish reason insufficient_system_resource breaks a reply off.
	"deepseek": {vendor: "deepseek", parallel: parallelNever, replay: replayLoop, effort: effortIn(
		`"thinking":{"type":"disabled"}`, `"thinking":{"type":"enabled"},`+plainEffort, "", "")},

	// docs.mistral.ai/api: unknown members get 422, stream_options (usage always comes) and
	// max_completion_tokens too. An id is nine of a-z, A-Z, 0-9 (error 3280), and a user's message
	// may not follow a result (error 3230). /capabilities/reasoning: content of a thinking model is
	// a list of text and thinking chunks. A thread works as well without the thinking, and other
	// models refuse it, so it is left out.
	"mistral": {vendor: "mistral", noUsageOption: true, shortIDs: true, order: strict, effort: mistralEffort},

	// openrouter.ai/docs: comments keep the stream alive while a provider is found;
	// reasoning_details go back unmodified, so that signatures and encrypted thinking stay valid;
	// an error after the first token is a chunk with error and the finish reason error; the
	// provider's own words stand in error.metadata. 403 is moderation or a guardrail and not the
	// key. The list of models has their windows, and architecture.input_modalities.
	"openrouter": {
		vendor: "openrouter", replay: replayDetails, guests: true, sizes: listed,
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

	// llama.cpp tools/server/README.md: /props has the window of a slot
	// (default_generation_settings.n_ctx) and modalities.vision, the list only the window of the
	// training. parallel_tool_calls
	// is off by default; chat_template_kwargs carries template options. Calls need --jinja, and a
	// prompt that is too large is exceed_context_size_error.
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

// Vendors returns the sorted names of the known vendors.
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

// of returns the quirks for one model: some vendors serve another vendor's models with its
// templates.
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

// noteJinja says how to make a self-hosted server take tools, or how to do without them.
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

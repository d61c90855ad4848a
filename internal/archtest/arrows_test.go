package archtest

// An arrow says what a package may import of this module. Names are relative to the module; "." is
// its root; a name that ends in "/..." stands for all packages below it. The first arrow whose from
// matches a package is the package's; a package without an arrow fails the test, so that its place
// is decided before it is used.
type arrow struct {
	from string
	to   []string
	why  string
}

// everything is what only the wiring and the harnesses around the whole program may import.
const everything = "internal/..."

// arrows is docs/design.md as a table: what is further down never imports what is further up.
var arrows = []arrow{
	{"cmd/regie", []string{".", "client", "internal/acp", "internal/app", "internal/chat", "internal/config", "internal/doctor", "internal/mcpserver", "internal/sanitize", "internal/i18n", "internal/tui"}, "a subcommand talks to app and to its client, in the words of the root"},
	{"internal/crash", []string{".", "client", everything}, "harness around the whole program"},
	{"internal/sim", []string{".", everything}, "harness around the whole program"},
	{"internal/invariant", []string{
		".", "internal/dialect", "internal/dispatch", "internal/prompt", "internal/provider", "internal/snapshot", "internal/store", "internal/store/sqlite", "internal/tool",
		"internal/toolkit/...",
	}, "what every harness asserts of a session, for tests"},
	{"internal/bench/...", []string{".", everything}, "harness around the whole program"},
	{"internal/archtest", nil, "reads source, runs nothing"},
	{"internal/app", []string{".", "client", everything}, "the only importer of everything"},

	{"internal/httpapi", []string{".", "internal/access", "internal/config", "internal/control", "internal/dispatch", "internal/httpread", "internal/sanitize", "internal/store"}, "a transport: requests in, views and events out"},
	{"internal/web", []string{".", "internal/access", "internal/automation", "internal/chat", "internal/control", "internal/dispatch", "internal/httpread", "internal/i18n", "internal/sanitize", "internal/store"}, "a transport: the service as pages and forms; @, / and the Markdown of an export are those of internal/chat"},
	{"internal/compat", []string{
		".", "internal/access", "internal/approval", "internal/control", "internal/dispatch", "internal/httpread", "internal/provider", "internal/provider/sse", "internal/store",
	}, "a transport: OpenAI's format in, what the log says of a round out"},
	{"client", []string{".", "internal/access", "internal/approval", "internal/control", "internal/dispatch", "internal/httpread", "internal/store"}, "the same from the other end, also for the commands of this process: the service over HTTP"},
	{"internal/chat", []string{".", "client", "internal/automation", "internal/dispatch", "internal/sanitize", "internal/store", "internal/i18n"}, "the terminal in plain lines: knows only the client"},
	{"internal/mcpserver", []string{".", "internal/access", "internal/approval", "internal/dispatch", "internal/httpread", "internal/sanitize", "internal/store", "internal/i18n"}, "a transport: the service for MCP clients; internal/toolkit/mcp is our own client"},
	{"internal/httpread", []string{".", "internal/store"}, "bodies whole and within bounds, and parameters, for what speaks HTTP"},
	{"internal/access", []string{".", "internal/store"}, "who asks a server; knows no transport"},
	{"internal/control", []string{
		".", "internal/access", "internal/approval", "internal/automation", "internal/config", "internal/dispatch", "internal/engine", "internal/fault", "internal/index", "internal/sanitize", "internal/slot", "internal/prompt", "internal/provider", "internal/provider/cache", "internal/skill", "internal/snapshot", "internal/store",
		"internal/store/sqlite", "internal/i18n", "internal/tool", "internal/toolkit/session", "internal/toolkit/shell", "internal/trust", "internal/undo", "internal/workspace",
	}, "the service: one type per noun, who may do what; knows no transport"},
	{"internal/acp", []string{".", "client", "internal/approval", "internal/chat", "internal/dispatch", "internal/sanitize", "internal/store", "internal/i18n"}, "a transport: a client for editors"},
	{"internal/tui", []string{".", "internal/chat", "internal/dispatch", "internal/sanitize", "internal/store", "internal/i18n"}, "a transport: knows only Control; what it shows is worded in internal/chat"},
	{"internal/automation", []string{".", "internal/i18n"}, "pure; when automations run"},
	{"internal/automation/trigger", []string{".", "internal/automation", "internal/dispatch", "internal/workspace"}, "starts what is due: a clock and a watch, which call the service"},
	{"internal/dispatch", []string{
		".", "internal/approval", "internal/engine", "internal/fault", "internal/provider", "internal/slot", "internal/store",
	}, "slots, lease, events"},
	{"internal/engine", []string{
		".", "internal/approval", "internal/dialect", "internal/fault", "internal/price", "internal/prompt", "internal/provider", "internal/store", "internal/tool",
	}, "one round; store is the contract, never a database"},

	{"internal/notify", []string{".", "internal/config", "internal/fault", "internal/sanitize", "internal/store"}, "delivers what the outbox holds; knows no transport of ours"},
	{"internal/undo", []string{".", "internal/fault", "internal/sanitize", "internal/store", "internal/tool", "internal/workspace"}, "takes back what rounds did to files; knows no toolkit"},

	{"internal/prompt", []string{".", "internal/dialect", "internal/provider"}, "pure; provider for the types of a turn"},
	{"internal/dialect", []string{".", "internal/provider"}, "pure; what a JSON reply says"},
	{"internal/approval", []string{"."}, "pure"},
	{"internal/slot", []string{"."}, "pure; who may run"},
	{"internal/provider", []string{"."}, "the contract of a model API"},
	{"internal/provider/providertest", []string{".", "internal/provider", "internal/provider/..."}, "every vendor's strict validator, for tests"},
	{"internal/provider/wire", []string{".", "internal/provider", "internal/provider/sse"}, "what the codecs share below their formats"},
	{"internal/provider/cache", []string{".", "internal/provider", "internal/store"}, "answers that were given before"},
	{"internal/provider/demo", []string{".", "internal/provider"}, "a provider without a wire"},
	{"internal/provider/...", []string{".", "internal/provider", "internal/provider/sse", "internal/provider/wire"}, "one vendor, knows no other"},
	{"internal/tool", []string{".", "internal/sanitize", "internal/spell"}, "registry and guard; knows no toolkit"},
	{"internal/toolkit/shell", []string{".", "internal/fault", "internal/sanitize", "internal/sandbox", "internal/snapshot", "internal/tool", "internal/workspace"}, "the one toolkit that runs commands"},
	{"internal/snapshot", []string{".", "internal/workspace"}, "what a workspace held before a command; knows no tool"},
	{"internal/toolkit/files", []string{".", "internal/index", "internal/sanitize", "internal/tool", "internal/workspace"}, "the one toolkit that searches an index"},
	{"internal/sandbox", []string{".", "internal/gitconfig"}, "runs commands, confined; knows no tool"},
	{"internal/hook", []string{"."}, "commands around calls and rounds; knows no engine"},
	{"internal/toolkit/skills", []string{".", "internal/sanitize", "internal/skill", "internal/tool"}, "what a model reads of agent skills"},
	{"internal/toolkit/automations", []string{".", "internal/access", "internal/dispatch", "internal/tool"}, "the requests of the service, for the owner of the sessions"},
	{"internal/skill", []string{".", "internal/sanitize"}, "agent skills: one file's bytes, and sets of them; whoever loads them reads the files"},
	{"internal/trust", []string{".", "internal/workspace"}, "what a workspace holds for agents, and what people have decided about it"},
	{"internal/publicnet", []string{".", "internal/sanitize"}, "which addresses are of the open internet; dials nothing"},
	{"internal/toolkit/...", []string{".", "internal/publicnet", "internal/sanitize", "internal/tool", "internal/workspace"}, "contributes tools, knows no other toolkit"},
	{"internal/workspace", []string{".", "internal/gitconfig"}, "the confined root"},
	{"internal/gitconfig", nil, "what git's configuration names; knows neither tools nor sessions"},
	{"internal/index/vector", nil, "pure; signs of vectors in memory"},
	{"internal/index", []string{".", "internal/index/vector", "internal/price", "internal/provider", "internal/workspace"}, "what is known of a workspace's files"},
	{"internal/store", []string{".", "internal/slot"}, "the contract of a database"},
	{"internal/store/storetest", []string{".", "internal/slot", "internal/store", "internal/store/sqlite"}, "one suite for every database"},
	{"internal/store/postgres", []string{".", "internal/fault", "internal/slot", "internal/store", "internal/store/sqlite"}, "below the transitions, which stand in sqlite"},
	{"internal/store/...", []string{".", "internal/fault", "internal/slot", "internal/store"}, "one database"},
	{"internal/metrics", []string{".", "internal/store"}, "counts what the log says"},
	{"internal/price", []string{"."}, "pure; what models cost"},
	{"internal/keyring", []string{"."}, "the keyring of the operating system"},
	{"internal/keyring/keyringtest", nil, "a keyring for tests"},
	{"internal/config", []string{".", "internal/keyring", "internal/price", "internal/skill", "internal/slot", "internal/spell"}, "settings and their origins"},
	{"internal/doctor", []string{".", "internal/config", "internal/sandbox", "internal/snapshot", "internal/store/postgres", "internal/store/sqlite", "internal/workspace"}, "what is wrong on a machine; asks nobody by itself"},
	{"internal/i18n", []string{"."}, "the catalogue"},
	{"internal/sanitize", nil, "text from outside, made harmless; needs nothing"},
	{"internal/spell", nil, "how much two words differ; needs nothing"},
	{"internal/fault", nil, "fault points; compiled to nothing in a release"},
	{".", nil, "the nouns: standard library only"},
}

// debts are imports that break an arrow and are known to: what to do about each stands beside it. A
// debt that is paid must leave the list, so the list only shrinks.
var debts = map[edge]string{
	{"cmd/regie", "internal/approval"}:  "the policy of --allow and --on-approval: let app parse the flags' words",
	{"cmd/regie", "internal/control"}:   "TokenRequest: the request types of the service could be aliases of client",
	{"cmd/regie", "internal/dispatch"}:  "Control and RunRequest: let app export what a subcommand needs of them",
	{"cmd/regie", "internal/store"}:     "the views that runs show prints: they are data and could be nouns of the root",
	{"cmd/regie", "internal/workspace"}: "Detect: let app find the workspace of a directory",
}

// nothingImports are packages for running or testing the program, never part of it.
var nothingImports = []string{"cmd/regie", "internal/crash", "internal/bench", "internal/archtest", "internal/provider/providertest", "internal/sim", "internal/invariant"}

// maxInternal bounds how many packages of this module another one imports, besides the root.
var maxInternal = map[string]int{"internal/engine": 8, "internal/dispatch": 8, "internal/httpapi": 8, "internal/tui": 8, "internal/compat": 8}

// pure are the packages whose answers depend on their arguments alone: no file, no network, no
// database, no clock, no chance.
var pure = []string{"internal/prompt", "internal/approval", "internal/automation", "internal/dialect", "internal/slot"}

// impure are what a pure package never imports, with everything below it.
var impure = []string{
	"bufio", "crypto/rand", "database/sql", "io/fs", "log", "math/rand", "net", "os", "path/filepath", "runtime", "syscall", "testing",
}

// clock are the functions of package time that a pure package never calls.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

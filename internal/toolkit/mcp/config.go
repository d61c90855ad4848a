package mcp

import (
	"log/slog"
	"net/textproto"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

const (
	defaultTimeout = time.Minute      // of a call: servers work across networks, so more than the 10 s of spec 4.3
	defaultStart   = 30 * time.Second // of start, initialize and list together
)

var (
	// serverName has no underscore in a row and none at its end, so that a tool's wire name reads
	// back (decision 27).
	serverName = regexp.MustCompile(`^[a-zA-Z0-9]+([_-][a-zA-Z0-9]+)*$`)
	headerName = regexp.MustCompile("^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$")
	secretName = regexp.MustCompile(`(?i)key|token|secret|pass|pwd|auth|cred|cookie|session|sign|private|dsn|database_url`)
)

// taken are the toolkits of the house: a server of such a name would come under the rules that were
// written for them.
var taken = []string{
	"agent", "app_state", "ask", "context", "documents", "files", "longtask", "mcp", "notes", "records", "regie",
	"schemas", "search", "session",
	"shell", "subagent", "task", "tool_data", "tools", "web", "zones",
}

// reserved are headers that the transport sets.
var reserved = []string{
	"Accept", "Connection", "Content-Length", "Content-Type", "Host", "Idempotency-Key", "Last-Event-Id",
	"Mcp-Protocol-Version", "Mcp-Session-Id",
	"Transfer-Encoding", "X-Idempotency-Key",
}

// Config says how a server is reached and what is believed of it (spec 13, mcp_servers). Exactly
// one of Command and URL is given.
type Config struct {
	// Name is the server's toolkit: its tools are Name.operation (decision 27).
	Name string
	// Command is the program and its arguments, started without a shell. The program is looked up
	// in this process's PATH.
	Command []string
	// Env is added to the small environment that the command gets: PATH, HOME, the user's name,
	// locale, zone and temporary directory. Nothing else of this process's environment reaches it
	// (spec 11.3).
	Env map[string]string
	// Dir is the directory that the command runs in, absolute; empty is this process's own.
	Dir string
	// URL is the address of a streamable HTTP endpoint. Redirects are not followed.
	URL string
	// Headers are sent with each HTTP request.
	Headers map[string]string
	// AllowPrivate lets the URL lead to this machine or a private network; without it the dialled
	// address must be a public one (spec 11.3). It is for addresses that the operator wrote, not
	// for those of a workspace's files.
	AllowPrivate bool
	// TrustHints believes the server's annotations: readOnlyHint is a query, idempotentHint an
	// action of class keyed (spec 13).
	TrustHints bool
	// Tools settles single tools, by the server's own name for them; it wins over hints and needs
	// no trust (spec 13).
	Tools map[string]Setting
	// Allow and Deny are patterns (path.Match) of the tools that are offered, by the server's own
	// names or by operation. An empty Allow means all; Deny wins.
	Allow, Deny []string
	// Timeout bounds a call, zero means a minute; StartTimeout bounds start, initialize and list
	// together, zero means 30 s.
	Timeout, StartTimeout time.Duration
	// Wait is how long a round that begins waits for the server while it is being tried, from the
	// beginning of the try; zero means 5 s.
	Wait time.Duration
	// Log gets what an operator needs to see: restarts, changed and left-out tools. Nil discards
	// it.
	Log *slog.Logger
}

// Setting is the operator's word about one tool (spec 13). An empty field follows from the other
// one, or from the hints.
type Setting struct {
	Kind  regie.CallKind
	Class regie.EffectClass // read, keyed or once: a server has no probe
}

// ValidName reports whether a server can have a name at all.
func ValidName(name string) bool {
	return len(name) <= 40 && serverName.MatchString(name) && !slices.Contains(taken, strings.ToLower(name))
}

// Validate checks a configuration without starting anything. It returns CodeBadRequest with what to
// change.
func (c Config) Validate() error {
	switch {
	case len(c.Name) > 40 || !serverName.MatchString(c.Name):
		return regie.Errorf(regie.CodeBadRequest,
			"%q is not a valid name for an MCP server: use letters, digits, single - and _, at most 40 characters",
			sanitize.Clip(c.Name, 60))
	case slices.Contains(taken, strings.ToLower(c.Name)):
		return regie.Errorf(regie.CodeBadRequest, "the MCP server %s has the name of a toolkit: choose another one",
			c.Name)
	case len(c.Command) == 0 && c.URL == "":
		return regie.Errorf(regie.CodeBadRequest, "the MCP server %s has neither a command nor a url: give one", c.Name)
	case len(c.Command) > 0 && c.URL != "":
		return regie.Errorf(regie.CodeBadRequest, "the MCP server %s has both a command and a url: give one", c.Name)
	case c.Timeout < 0 || c.StartTimeout < 0 || c.Wait < 0:
		return regie.Errorf(regie.CodeBadRequest, "the MCP server %s has a negative timeout", c.Name)
	}
	check := c.validateCommand
	if c.URL != "" {
		check = c.validateURL
	}
	if err := check(); err != nil {
		return err
	}
	return c.validateTools()
}

func (c Config) validateCommand() error {
	switch {
	case c.Command[0] == "":
		return regie.Errorf(regie.CodeBadRequest, "the MCP server %s has an empty command", c.Name)
	case len(c.Headers) > 0:
		return regie.Errorf(regie.CodeBadRequest, "the MCP server %s has headers, which only a url uses", c.Name)
	case c.Dir != "" && !filepath.IsAbs(c.Dir):
		return regie.Errorf(regie.CodeBadRequest, "the directory of the MCP server %s must be absolute", c.Name)
	}
	return nil
}

func (c Config) validateURL() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		// The address is not printed: it may hold a key.
		return regie.Errorf(regie.CodeBadRequest,
			"the url of the MCP server %s is not an address: write it like https://example.org/mcp", c.Name)
	case u.User != nil:
		return regie.Errorf(regie.CodeBadRequest,
			"the url of the MCP server %s holds a user or password: put it into headers", c.Name)
	case len(c.Env) > 0 || c.Dir != "":
		return regie.Errorf(regie.CodeBadRequest,
			"the MCP server %s has an environment or a directory, which only a command uses", c.Name)
	}
	for name, value := range c.Headers {
		switch {
		case !headerName.MatchString(name) || strings.ContainsAny(value, "\x00\r\n"):
			return regie.Errorf(regie.CodeBadRequest, "the MCP server %s has the header %q, which cannot be sent",
				c.Name, sanitize.Clip(name, 60))
		case slices.Contains(reserved, textproto.CanonicalMIMEHeaderKey(name)):
			return regie.Errorf(regie.CodeBadRequest, "the MCP server %s sets the header %s, which Regie sets itself",
				c.Name, name)
		}
	}
	return nil
}

func (c Config) validateTools() error {
	for _, pattern := range slices.Concat(c.Allow, c.Deny) {
		if _, err := path.Match(pattern, ""); err != nil {
			return regie.Errorf(regie.CodeBadRequest,
				"%q is not a pattern for the tools of the MCP server %s: write get_* or a name", sanitize.Clip(pattern, 60),
				c.Name)
		}
	}
	for name, setting := range c.Tools {
		if !setting.isValid() {
			return regie.Errorf(regie.CodeBadRequest,
				"the tool %q of the MCP server %s can be a query of class read, or an action of class keyed or once",
				sanitize.Clip(name, 60), c.Name)
		}
	}
	return nil
}

func (s Setting) isValid() bool {
	switch s.Class {
	case "":
		return s.Kind == "" || s.Kind == regie.KindQuery || s.Kind == regie.KindAction
	case regie.ClassRead:
		return s.Kind == "" || s.Kind == regie.KindQuery
	case regie.ClassKeyed, regie.ClassOnce:
		return s.Kind == "" || s.Kind == regie.KindAction
	default:
		return false
	}
}

// offersTool reports whether the filters let a tool through, by the server's name for it or its
// operation.
func (c Config) offersTool(remote, operation string) bool {
	matches := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			byRemote, _ := path.Match(pattern, remote)
			byOperation, _ := path.Match(pattern, operation)
			return byRemote || byOperation || pattern == remote
		})
	}
	return !matches(c.Deny) && (len(c.Allow) == 0 || matches(c.Allow))
}

// secretValues returns the values to hide in quotes of the server (spec 11.3), longest first, so
// that none is cut by another. Their names select them: a directory in the environment must stay
// readable in results. Short values are everyday words.
func (c Config) secretValues() []string {
	const worthHiding = 6
	var out []string
	for _, values := range []map[string]string{c.Env, c.Headers} {
		for name, value := range values {
			if !secretName.MatchString(name) {
				continue
			}
			out = append(out, value)
			if _, token, ok := strings.Cut(value, " "); ok { // Bearer …
				out = append(out, token)
			}
		}
	}
	if u, err := url.Parse(c.URL); err == nil {
		for name, values := range u.Query() {
			if secretName.MatchString(name) {
				out = append(out, values...)
			}
		}
	}
	out = slices.DeleteFunc(out, func(s string) bool { return len(s) < worthHiding })
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(out)
}

func (c Config) callTimeout() time.Duration {
	if c.Timeout == 0 {
		return defaultTimeout
	}
	return c.Timeout
}

func (c Config) startTimeout() time.Duration {
	if c.StartTimeout == 0 {
		return defaultStart
	}
	return c.StartTimeout
}

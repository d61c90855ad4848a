package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// fetch runs a call of web.fetch.
func fetch(t *testing.T, c Config, address string, maxBytes int) tool.Outcome {
	t.Helper()
	tools, err := Tools(c)
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := json.Marshal(args{URL: address, MaxBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	return tool.Run(t.Context(), tools[0], &tool.Invocation{Arguments: arguments})
}

var here = Config{Ranges: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// site serves what the tests read.
func site(t *testing.T) (address string, seen chan *http.Request) {
	t.Helper()
	seen = make(chan *http.Request, 20)
	zeros := func(n int) []byte { return bytes.Repeat([]byte("A"), n) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		reply := func(kind, body string) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(body))
		}
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Set-Cookie", "id=1")
			reply("text/html; charset=iso-8859-1", "<title>T\xe9</title><h1>Caf\xe9</h1><script>evil()</script><a href='/b'>on</a>")
		case "/json":
			reply("application/json", `{"a":1}`)
		case "/hidden":
			reply("text/plain", "a\u202eb\x1b[2J\r\nc")
		case "/image":
			reply("image/png", "\x89PNG\r\n")
		case "/lies":
			reply("text/plain", "a\x00b")
		case "/long":
			reply("text/plain", string(zeros(3<<20)))
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/plain")
			z := gzip.NewWriter(w)
			_, _ = z.Write(zeros(64 << 20))
			_ = z.Close()
		case "/missing":
			w.WriteHeader(http.StatusNotFound)
			reply("text/html", "<p>nothing</p>")
		case "/moved":
			http.Redirect(w, r, "/json", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/inside":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/login":
			http.Redirect(w, r, "http://user:pw@"+r.Host+"/json", http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, seen
}

func TestFetch(t *testing.T) {
	address, seen := site(t)
	for _, row := range []struct {
		path, says, never string
		code              regie.Code
	}{
		{"/page", "# Café\n\n[on](" + address + "/b)", "evil", ""},
		{"/page", "[title: Té]", "", ""},
		{"/json", `{"a":1}`, "", ""},
		{"/hidden", "a<U+202E>b␛[2J\nc", "\x1b", ""},
		{"/image", "not text, and not shown: 6 bytes", "PNG\r", ""},
		{"/lies", "not text", "a\x00", ""},
		{"/long", "only the first 1048576 bytes", "", ""},
		{"/bomb", "only the first 1048576 bytes", "", ""},
		{"/missing", "answered 404 Not Found: nothing", "", regie.CodeToolError},
		{"/moved", `{"a":1}`, "", ""},
		{"/loop", "redirected more than 5 times", "", regie.CodeToolError},
		{"/inside", "not fetched: http://169.254.169.254/latest/meta-data", "", ""},
		{"/file", "only http:// and https:// are", "root:", regie.CodeToolError},
		{"/login", "user name or a password", "pw@", regie.CodeToolError},
	} {
		out := fetch(t, here, address+row.path+"#part", 0)
		said := out.Result
		if out.Whole != "" {
			said = out.Whole
		}
		var code regie.Code
		if out.Error != nil {
			said, code = out.Error.Message, out.Error.Code
		}
		if code != row.code || !strings.Contains(said, row.says) || row.never != "" && strings.Contains(said, row.never) {
			t.Errorf("%s: %s %.300q", row.path, code, said)
		}
	}
	for len(seen) > 0 {
		r := <-seen
		if r.Header.Get("Cookie") != "" || r.Referer() != "" || !strings.HasPrefix(r.UserAgent(), "Regie") {
			t.Errorf("%s was sent %v", r.URL, r.Header)
		}
	}
}

// TestFetchPrivate: no name and no proxy leads inside, but what the operator wrote does.
func TestFetchPrivate(t *testing.T) {
	address, seen := site(t)
	t.Setenv("HTTP_PROXY", address)
	byName := strings.Replace(address, "127.0.0.1", "localhost", 1)
	for _, row := range []struct {
		config  Config
		address string
		allowed bool
	}{
		{Config{}, address, false},
		{Config{}, byName, false},
		{Config{}, strings.Replace(address, "127.0.0.1", "[::ffff:127.0.0.1]", 1), false},
		{Config{Ranges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, address, false},
		{here, byName, true},
		{Config{Hosts: []string{"localhost"}}, byName, true},
		{Config{Hosts: []string{"localhost"}}, address, false},
	} {
		out := fetch(t, row.config, row.address+"/json", 0)
		if allowed := out.State == regie.CallSucceeded; allowed != row.allowed {
			t.Errorf("%+v %s: %+v", row.config, row.address, out)
		}
		if !row.allowed && (out.Error == nil || out.Error.Code != regie.CodeNoPermission) {
			t.Errorf("%s: %+v", row.address, out.Error)
		}
		if row.allowed != (len(seen) > 0) {
			t.Errorf("%+v %s reached the server: %t", row.config, row.address, !row.allowed)
		}
		for len(seen) > 0 {
			<-seen
		}
	}
}

func TestParseURL(t *testing.T) {
	for address, want := range map[string]bool{
		"https://example.com/a?b=c#d": true, "HTTP://example.com": true,
		"ftp://example.com": false, "file:///etc/passwd": false, "//example.com": false, "example.com": false,
		"https://u@example.com": false, "https://u:p@example.com": false, "https://": false, "https:///a": false,
		"https://exämple.com": false, "https://" + strings.Repeat("a", maxURL): false, "javascript:1": false,
	} {
		if _, err := parseURL(address); (err == nil) != want {
			t.Errorf("%.60s: %v", address, err)
		}
	}
}

func TestPreviewScopes(t *testing.T) {
	tools, err := Tools(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{
		"https://Docs.example.com/guide/a?b=1": "https://docs.example.com/guide/ https://docs.example.com/",
		"http://example.com:80":                "http://example.com/",
		"https://example.com/a%2fb":            "",
	} {
		data, _ := json.Marshal(args{URL: address})
		p, refused := tool.DescribeCall(t.Context(), tools[0], &tool.Invocation{Arguments: data})
		var got []string
		for _, scope := range p.Scopes[1:] { // behind "exactly these arguments"
			got = append(got, scope.Value)
			if !scope.Matches(Fetch, regie.Hash{}, map[string]any{"url": address}) {
				t.Errorf("%s does not lie in %+v", address, scope)
			}
		}
		if refused != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q %v", address, got, refused)
		}
	}
}

func TestMarkdown(t *testing.T) {
	base, _ := url.Parse("https://e.x/d/")
	for page, want := range map[string]string{
		"<p>a <b>b</b>c\n d<p>e":                                                         "a bc d\n\ne",
		"a&amp;b &lt;i&gt; caf&eacute;":                                                  "a&b <i> café",
		"<h2>A <code>b c</code>.</h2>x":                                                  "## A `b c`.\n\nx",
		"<a href=b?x=(1)>one\n<br>two</a>!":                                              "[one two](https://e.x/d/b?x=%281%29)!",
		"<a href=javascript:x>t</a> <a href='#a'>u</a> <a href=/c></a>":                  "t u [https://e.x/c](https://e.x/c)",
		"<ul><li>a<li><p>b</p><ol><li>c<li>d</ol></li><li>e</ul>f":                       "- a\n- b\n\n  1. c\n  2. d\n- e\n\nf",
		"<pre>\n a\n  b```\n</pre>c":                                                     "````\n a\n  b```\n````\n\nc",
		"<table><tr><th>A<th>B|<tr><td>1<td><p>2<p>3</table>x":                           "| A | B\\|\n| 1 | 2 3\n\nx",
		"<blockquote>q<p>r</blockquote>s":                                                "> q\n\n> r\n\ns",
		"<nav>menu</nav><main><h1>T</h1>b</main><footer>f":                               "# T\n\nb",
		"<style>s</style><svg><svg>x</svg>y</svg><template>t</template>z<script>'</scr'": "z",
		"a<img src=a.png alt=pic>b<hr>":                                                  "ab\n\n---",
	} {
		if got, _ := Markdown(page, base); got != want+"\n" {
			t.Errorf("%s:\n%q, want\n%q", page, got, want)
		}
	}
}

// TestMarkdownLinear: no page takes time that is out of proportion.
func TestMarkdownLinear(t *testing.T) {
	base, _ := url.Parse("https://e.x/")
	for _, piece := range []string{
		"<div>", "<b>", "<a href=x>y", "<ul><li>x", "<blockquote>x", "<table><tr><td>x", "<pre>`", "</p>", "<svg>", "<main>",
		"`", "&", "<", "<title>x",
	} {
		began := time.Now()
		Markdown(strings.Repeat(piece, (1<<20)/len(piece)), base)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %s", piece, took)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{
		"<ul><li>a<ol><li>b</ul>c", "<table><tr><td><pre>`</pre><td>x", "<a href=http://x/>b<pre>c</a>d", "<main><svg></main>x",
		"<blockquote><table><a href=/x><td></table>", "<title>a</title><pre><pre></pre></pre></pre>",
	} {
		f.Add(seed)
	}
	base, _ := url.Parse("https://e.x/")
	f.Fuzz(func(t *testing.T, page string) {
		text, title := Markdown(page, base)
		if strings.Contains(title, "\n") || len(text) > 40*len(page)+200 {
			t.Fatalf("%q: %d bytes, title %q", page, len(text), title)
		}
	})
}

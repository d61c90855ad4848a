package control

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
)

func TestAuthorize(t *testing.T) {
	as := func(scopes ...regie.TokenScope) *access.Caller {
		return &access.Caller{Via: access.ViaToken, Token: regie.Token{ID: regie.NewID(), Scopes: scopes}}
	}
	through := func(scope regie.TokenScope) *access.Caller {
		return &access.Caller{Via: access.ViaToken, Token: as(scope).Token, Surface: scope}
	}
	visitor := func() *access.Caller {
		return &access.Caller{Via: access.ViaVisitor, Visitor: &access.Visitor{}, Token: regie.Token{ID: regie.NewID()}}
	}
	for name, c := range map[string]struct {
		caller    *access.Caller
		operation string
		want      regie.Code
	}{
		"nobody":                      {nil, "list_users", regie.CodeForbidden},
		"an unknown operation":        {&access.Caller{Via: access.ViaSocket}, "frobnicate_users", regie.CodeForbidden},
		"the owner":                   {&access.Caller{Via: access.ViaSocket}, "add_token", ""},
		"a token with the scope":      {as(regie.ScopeAdmin), "add_token", ""},
		"a token without it":          {as(regie.ScopeRead), "add_token", regie.CodeMissingScope},
		"every caller":                {as(), "show_me", ""},
		"a part of other operations":  {as(regie.ScopeChat), "follow_session", ""},
		"a visitor's own":             {visitor(), "send_visit", ""},
		"a visitor's of others":       {visitor(), "list_sessions", regie.CodeForbidden},
		"a visitor as every caller":   {visitor(), "show_me", regie.CodeForbidden},
		"the owner as a visitor":      {&access.Caller{Via: access.ViaSocket}, "send_visit", regie.CodeForbidden},
		"a program's, reading":        {through(regie.ScopeMCP), "show_session", ""},
		"a program's, chatting":       {through(regie.ScopeCompletions), "send_message", ""},
		"a program's, approving":      {through(regie.ScopeMCP), "decide", regie.CodeMissingScope},
		"a program's, administrating": {through(regie.ScopeMCP), "revoke_rules", regie.CodeMissingScope},
		"its token elsewhere":         {as(regie.ScopeMCP), "show_session", regie.CodeMissingScope},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.caller != nil {
				ctx = access.With(ctx, c.caller)
			}
			caller, err := New(Config{}).Users.authorize(ctx, c.operation)
			if regie.CodeOf(err) != c.want || (err == nil) != (caller != nil) {
				t.Errorf("got %v, %v", caller, err)
			}
		})
	}
}

// TestAuthorizeFirst reads this package: each exported method with a context begins with authorize,
// and each operation of the table is used.
func TestAuthorizeFirst(t *testing.T) {
	set := token.NewFileSet()
	names, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, _ := strconv.Unquote(literal.Value)
				asked[text] = asked[text] || name != "authorize.go"
			}
			return true
		})
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if ok && fn.Recv != nil && fn.Name.IsExported() && takesContext(fn) && !beginsWithAuthorize(fn) {
				t.Errorf("%s: %s does not begin with authorize", set.Position(fn.Pos()), fn.Name.Name)
			}
		}
	}
	for _, operation := range slices.Sorted(maps.Keys(requiredScopes)) {
		if !asked[operation] {
			t.Errorf("no method asks for %s", operation)
		}
	}
}

func takesContext(fn *ast.FuncDecl) bool {
	for _, param := range fn.Type.Params.List {
		if of, ok := param.Type.(*ast.SelectorExpr); ok && of.Sel.Name == "Context" {
			return true
		}
	}
	return false
}

// beginsWithAuthorize reports whether one of the first three statements calls authorize: what comes
// before it can only choose the operation.
func beginsWithAuthorize(fn *ast.FuncDecl) (found bool) {
	for _, statement := range fn.Body.List[:min(3, len(fn.Body.List))] {
		ast.Inspect(statement, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				method, _ := call.Fun.(*ast.SelectorExpr)
				found = found || method != nil && strings.HasPrefix(method.Sel.Name, "authorize")
			}
			return true
		})
	}
	return found
}

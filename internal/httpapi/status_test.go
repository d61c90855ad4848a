package httpapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/regie-run/regie"
)

// declaredCodes reads the codes out of the root package's source: a list kept by hand would be
// forgotten.
func declaredCodes(t *testing.T) map[string]regie.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]regie.Code{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		kind, isName := spec.Type.(*ast.Ident)
		value, isText := spec.Values[0].(*ast.BasicLit)
		if !isName || !isText || kind.Name != "Code" {
			return true
		}
		code, err := strconv.Unquote(value.Value)
		if err != nil {
			t.Fatal(err)
		}
		codes[spec.Names[0].Name] = regie.Code(code)
		return true
	})
	if len(codes) < 50 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	return codes
}

// TestEveryCodeHasAStatus compares the codes that are declared with those whose status somebody has
// decided.
func TestEveryCodeHasAStatus(t *testing.T) {
	codes := declaredCodes(t)
	known := map[regie.Code]bool{}
	for name, code := range codes {
		known[code] = true
		if _, ok := statuses[code]; !ok {
			t.Errorf("%s (%s) has no status: say in status.go what a client gets", name, code)
		}
	}
	for code, status := range statuses {
		if !known[code] {
			t.Errorf("%s is no code of the root package", code)
		}
		if status < 400 || http.StatusText(status) == "" {
			t.Errorf("%s has the status %d", code, status)
		}
	}
}

// TestStatusOfCodes is what clients count on, over the wire: each status with its code in the body.
func TestStatusOfCodes(t *testing.T) {
	for code, want := range map[regie.Code]int{
		regie.CodeFileExists: 409, regie.CodeFileChanged: 409, regie.CodeStalePreview: 409, regie.CodeToolChanged: 409, regie.CodeOutcomeUnknown: 409,
		regie.CodePathProtected: 403, regie.CodeNoPermission: 403, regie.CodeForbidden: 403, regie.CodeUserRejected: 403,
		regie.CodeNotAFile: 422, regie.CodeSpecialFile: 422, regie.CodeNotText: 422, regie.CodeFileTooLarge: 413, regie.CodeUnknownTool: 404, regie.CodeBadArguments: 400,
		regie.CodeServerDown: 503, regie.CodeServerLost: 502, regie.CodeTimeout: 504, regie.CodeProviderAuth: 502, regie.CodeDatabaseLocked: 503,
		regie.CodeInternal: 500, regie.CodeCorrupt: 500, "NO_SUCH_CODE": 500,
	} {
		s := &server{Config: Config{Translate: func(_ string, err error) string { return err.Error() }}}
		response := httptest.NewRecorder()
		s.fail(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), regie.Errorf(code, "no"))
		if response.Code != want {
			t.Errorf("%s: %d, want %d", code, response.Code, want)
		}
	}
}

package httpread

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
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

// TestStatus_UnknownCode reports a code of nobody as a fault of the server.
func TestStatus_UnknownCode(t *testing.T) {
	if Status("NO_SUCH_CODE") != http.StatusInternalServerError {
		t.Error("a code that nobody declares is no fault of the client")
	}
}

// TestStatusOfWaits is what clients rely on that answer, or say something, too late.
func TestStatusOfWaits(t *testing.T) {
	for code, want := range map[regie.Code]int{
		regie.CodeExpired: http.StatusGone, regie.CodeStalePreview: http.StatusConflict,
		regie.CodeRoundInProgress: http.StatusConflict, regie.CodeConflict: http.StatusConflict,
		regie.CodeUndoConflict: http.StatusConflict,
	} {
		if got := Status(code); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}

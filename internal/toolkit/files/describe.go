package files

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"

	"github.com/regie-run/regie/internal/tool"
)

// imageHead is how much of an image is looked through for its size.
const imageHead = 1 << 20

// signatures name kinds of files that browsers do not know.
var signatures = []struct{ begins, kind string }{
	{"\x7fELF", "program (ELF)"},
	{"\xcf\xfa\xed\xfe", "program (Mach-O)"},
	{"\xca\xfe\xba\xbe", "Java class or universal program"},
	{"MZ", "program (Windows)"},
	{"SQLite format 3\x00", "SQLite database"},
	{"!<arch>\n", "archive of objects (ar)"},
	{"7z\xbc\xaf\x27\x1c", "archive (7z)"},
	{"\xfd7zXZ\x00", "compressed (xz)"},
	{"BZh", "compressed (bzip2)"},
	{"\x28\xb5\x2f\xfd", "compressed (zstd)"},
	{"\x00asm", "WebAssembly"},
	{"go object ", "Go object"},
}

// describe says of a file that is no text what can be said in a line: its kind, size, hash, of an
// image its measures.
func (k *toolkit) describe(name string, in *bufio.Reader, head []byte, size int64) (tool.Result, error) {
	kind := kindOf(head)
	what := fmt.Sprintf("%s is not text that can be shown: %d bytes, %s", name, size, kind)
	if size > k.bounds.whole {
		return tool.Result{Content: what}, nil
	}
	sum := sha256.New()
	if measures := measuresOf(kind, io.TeeReader(io.LimitReader(in, imageHead), sum)); measures != "" {
		what += ", " + measures
	}
	if _, err := io.Copy(sum, in); err != nil {
		return tool.Result{}, unreadable(name, err)
	}
	return tool.Result{Content: fmt.Sprintf("%s, SHA-256 %x", what, sum.Sum(nil))}, nil
}

func kindOf(head []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(head, []byte(s.begins)) {
			return s.kind
		}
	}
	kind := http.DetectContentType(head)
	if strings.HasPrefix(kind, "text/") { // it was taken for none
		return "bytes of no known kind"
	}
	return kind
}

// measuresOf reads the head of an image, all of it, whatever stands in it.
func measuresOf(kind string, head io.Reader) string {
	decode := map[string]func(io.Reader) (image.Config, error){
		"image/png":  png.DecodeConfig,
		"image/jpeg": jpeg.DecodeConfig, "image/gif": gif.DecodeConfig,
	}[kind]
	data, err := io.ReadAll(head)
	if decode == nil || err != nil {
		return ""
	}
	config, err := decode(strings.NewReader(string(data)))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d × %d pixels", config.Width, config.Height)
}

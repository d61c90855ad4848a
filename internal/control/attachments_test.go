package control

import (
	"bytes"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestCheckImage holds what can be sent as an image: whole, PNG or JPEG, within the bounds.
func TestCheckImage(t *testing.T) {
	encode := func(width, height int, encode func(*bytes.Buffer, image.Image) error) []byte {
		var b bytes.Buffer
		if err := encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	asPNG := func(b *bytes.Buffer, i image.Image) error { return png.Encode(b, i) }
	asJPEG := func(b *bytes.Buffer, i image.Image) error { return jpeg.Encode(b, i, nil) }
	asGIF := func(b *bytes.Buffer, i image.Image) error { return gif.Encode(b, i, nil) }
	whole := encode(64, 64, asPNG)
	for name, c := range map[string]struct {
		data         []byte
		kind, refuse string
	}{
		"PNG":             {whole, "png", ""},
		"JPEG":            {encode(8, 8, asJPEG), "jpeg", ""},
		"GIF":             {encode(8, 8, asGIF), "", "PNG and JPEG can"},
		"text":            {[]byte("<svg/>"), "", "PNG and JPEG can"},
		"nothing":         {nil, "", "PNG and JPEG can"},
		"cut":             {whole[:len(whole)-20], "", "damaged"},
		"too many bytes":  {append(whole, make([]byte, regie.MaxImageBytes)...), "", "at most 3932160 are allowed"},
		"too wide":        {encode(regie.MaxImageSide+1, 1, asPNG), "", "8001 × 1 pixels"},
		"too many pixels": {encode(5001, 5000, asPNG), "", "25000000 in all"},
	} {
		t.Run(name, func(t *testing.T) {
			kind, err := checkImage(c.data)
			switch {
			case c.refuse == "" && (err != nil || kind != c.kind):
				t.Errorf("got %q, %v", kind, err)
			case c.refuse != "" && (regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), c.refuse)):
				t.Errorf("got %q, %v", kind, err)
			}
		})
	}
}

package chat

import (
	"context"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// AttachImages uploads the images that a message names, and puts each in the place of its mention.
// read reads one by the path of its mention; its errors, and those of the upload, are about it.
func AttachImages(ctx context.Context, control Control, read func(path string) ([]byte, error),
	segments []regie.Segment,
) ([]regie.Segment, error) {
	for i := range segments {
		block := segments[i].Enrichment
		if read == nil || block == nil || !block.NamesImage() {
			continue
		}
		data, err := read(block.Path)
		if err != nil {
			return nil, err
		}
		name := path.Base(filepath.ToSlash(block.Path))
		attached, err := control.Attachments.Add(ctx, dispatch.Upload{Name: name, Data: data})
		if err != nil {
			return nil, err
		}
		segments[i] = regie.Segment{Attachment: &attached}
	}
	return segments, nil
}

// MentionPastedImage returns the mention of an image whose path was pasted, as terminals do where a
// file is dropped on them: in quotes, with escaped spaces, or as a file's address.
func MentionPastedImage(pasted string, look Look) (mention string, ok bool) {
	name := strings.TrimSpace(pasted)
	switch {
	case strings.HasPrefix(name, "file://"):
		address, err := url.Parse(name)
		if err != nil {
			return "", false
		}
		name = address.Path
	case len(name) > 1 && strings.ContainsRune(`'"`, rune(name[0])) && name[len(name)-1] == name[0]:
		name = name[1 : len(name)-1]
	default:
		name = strings.ReplaceAll(name, `\ `, " ")
	}
	if look == nil || !filepath.IsAbs(name) || strings.ContainsAny(name, "\"\r\n") {
		return "", false
	}
	block, ok := look.resolveName(name)
	return `@"` + name + `" `, ok && block.NamesImage()
}

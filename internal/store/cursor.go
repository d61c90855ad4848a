package store

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// Mark is a place in a list ordered by time: that of the entry with this time and id. The zero Mark
// is before the first.
type Mark struct {
	At time.Time
	ID regie.ID
}

// Micros is the mark's time in the store's unit; 0 for the zero Mark.
func (m Mark) Micros() int64 {
	if m.At.IsZero() {
		return 0
	}
	return m.At.UnixMicro()
}

// Cursor encodes a mark of a list as one opaque word; the zero Mark is "". list is the end of the
// list's address, such as "sessions": the same mark is another word in each list.
func Cursor(list string, m Mark) string {
	if m.Micros() == 0 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(list + " " +
		strconv.FormatInt(m.Micros(), 10) + " " + m.ID.String()))
}

// ParseCursor decodes a word of Cursor for this list. It returns CodeBadRequest for anything else:
// a mark of another list would be silently wrong here.
func ParseCursor(list, text string) (Mark, error) {
	if text == "" {
		return Mark{}, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	of, mark, _ := strings.Cut(string(data), " ")
	at, id, ok := strings.Cut(mark, " ")
	micros, bad := strconv.ParseInt(at, 10, 64)
	if err == nil && ok && of == list && bad == nil && micros > 0 {
		if id, err := regie.ParseID(id); err == nil {
			return Mark{At: time.UnixMicro(micros).UTC(), ID: id}, nil
		}
	}
	return Mark{}, regie.Errorf(regie.CodeBadRequest, "the cursor does not belong to this list: start the list again")
}

package sqlite_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestExportAsDescribed checks an export by docs/export.md alone, from its bytes and the key, as a
// program of somebody else would.
func TestExportAsDescribed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	fence, _ := storetest.NewWorld(t, s).Told()
	forked, err := s.Fork(t.Context(), store.Fork{From: fence.SessionID})
	must(t, err)
	out, err := s.Export(t.Context(), forked.Session.ID)
	must(t, err)
	data, err := json.MarshalIndent(out, "", "  ")
	must(t, err)
	var file struct {
		Log struct {
			OwnerID string `json:"owner_id"`
			Head    int64
			MAC     string
			Events  []struct {
				Seq    int64
				Type   string
				At     int64  `json:"at_us"`
				SHA256 string `json:"body_sha256"`
				MAC    string
				Body   *string
			}
		}
		Messages []struct {
			Seq   int64
			Calls []struct {
				ID, Result string
				CopyOf     string `json:"copy_of"`
			}
		}
	}
	must(t, json.Unmarshal(data, &file))
	key, err := os.ReadFile(filepath.Join(dir, "audit.key"))
	must(t, err)
	mac := func(parts ...[]byte) []byte {
		h := hmac.New(sha256.New, key)
		for _, part := range parts {
			h.Write(part)
		}
		return h.Sum(nil)
	}
	previous := mac([]byte("regie chain of "), forked.Session.ID[:])
	results := map[string]string{}
	for i, row := range file.Log.Events {
		sum := sha256.Sum256([]byte(*row.Body))
		if row.Seq != int64(i+1) || hex.EncodeToString(sum[:]) != row.SHA256 {
			t.Fatalf("row %d is not described: %+v", i+1, row)
		}
		var fixed [16]byte
		binary.BigEndian.PutUint64(fixed[:8], uint64(row.Seq))
		binary.BigEndian.PutUint64(fixed[8:], uint64(row.At))
		previous = mac(previous, fixed[:], sum[:], []byte(row.Type))
		if hex.EncodeToString(previous) != row.MAC {
			t.Fatalf("the MAC of row %d is another one", i+1)
		}
		var body struct {
			CallID string `json:"call_id"`
			Result string `json:"result"`
		}
		if must(t, json.Unmarshal([]byte(*row.Body), &body)); row.Type == "tool_result" {
			results[body.CallID] = body.Result
		}
	}
	if file.Log.Head != int64(len(file.Log.Events)) || file.Log.MAC != hex.EncodeToString(previous) {
		t.Errorf("the log ends at %d with %s", file.Log.Head, file.Log.MAC)
	}
	compared := 0
	for _, m := range file.Messages {
		for _, c := range m.Calls {
			sum := sha256.Sum256([]byte(c.Result))
			if compared++; c.CopyOf == "" || results[c.ID] != "" && results[c.ID] != hex.EncodeToString(sum[:]) {
				t.Errorf("call %s is not what the log says", c.ID)
			}
		}
	}
	if compared != 5 || len(out.Blobs) != 1 {
		t.Errorf("%d calls and %d blobs", compared, len(out.Blobs))
	}
}

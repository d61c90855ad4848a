package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// objectSchema returns the schema of a tool's arguments for an API that takes objects only, without
// the refused keys at its top. The tool itself still validates its arguments.
func objectSchema(schema json.RawMessage, refused []string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil || members == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	changed := false
	for _, key := range refused {
		if _, ok := members[key]; ok {
			delete(members, key)
			changed = true
		}
	}
	if string(members["type"]) != `"object"` {
		members["type"], changed = json.RawMessage(`"object"`), true
	}
	if !changed {
		return schema
	}
	out, err := json.Marshal(members)
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return out
}

// ShortID is a call's id for an API that takes at most longest characters. A thread can change its
// provider, and other vendors' ids may be longer: such a one becomes a hash of itself, the same at
// the call and at its result.
func ShortID(id string, longest int) string {
	if len(id) <= longest {
		return id
	}
	return HashID(id)
}

// HashID returns a replacement for an id that an API does not accept.
func HashID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

package compat

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/regie-run/regie"
)

// Client ids contain the stored ids, so that no lookup is needed: a call with its session, a round
// with its session. An item of a response is a call, or the message of a round.
const (
	callPrefix     = "call_"
	responsePrefix = "resp_"
	callItemPrefix = "fc_"
	messagePrefix  = "msg_"
)

// packID writes two ids behind a prefix.
func packID(prefix string, first, second regie.ID) string {
	data := append(append([]byte{}, first[:]...), second[:]...)
	return prefix + base64.RawURLEncoding.EncodeToString(data)
}

// unpackID reads what packID wrote; ok is false for what another program has made.
func unpackID(prefix, text string) (first, second regie.ID, ok bool) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(text, prefix))
	if err != nil || len(data) != 32 || !strings.HasPrefix(text, prefix) {
		return first, second, false
	}
	copy(first[:], data)
	copy(second[:], data[16:])
	return first, second, true
}

func callID(session, call regie.ID) string { return packID(callPrefix, session, call) }

func messageID(round regie.ID) string { return messagePrefix + round.String() }

// parseItemID reads the id of an item; call is zero for the message of a round.
func parseItemID(text string) (round, call regie.ID, ok bool) {
	if id, is := strings.CutPrefix(text, messagePrefix); is {
		round, err := regie.ParseID(id)
		return round, call, err == nil
	}
	return unpackID(callItemPrefix, text)
}

// idOf makes an id of words: the same each time.
func idOf(words ...string) (id regie.ID) {
	sum := sha256.Sum256([]byte("regie compat\x00" + strings.Join(words, "\x00")))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUIDv8
	return id
}
